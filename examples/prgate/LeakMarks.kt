package com.shop

import android.os.ParcelFileDescriptor.AutoCloseInputStream
import android.os.SystemClock
import androidx.test.platform.app.InstrumentationRegistry
import org.junit.rules.TestWatcher
import org.junit.runner.Description

/**
 * Dumps the heap of the app at marks, from an instrumented test: repeat the scenario and call [mark] after each loop. The
 * dumps are DIRECTORY/TestClass.test-01.hprof and so on, for `leakgate gate --dump com.shop=...`. Debuggable builds only.
 */
class LeakMarks(private val directory: String = "/data/local/tmp/leak-marks") : TestWatcher() {
    private val instrumentation = InstrumentationRegistry.getInstrumentation()
    private var test = ""
    private var loops = 0

    override fun starting(description: Description) {
        test = "${description.testClass.simpleName}.${description.methodName}".replace(Regex("[^A-Za-z0-9_.]"), "_")
        shell("mkdir -p $directory")
    }

    fun mark() {
        SystemClock.sleep(5_000) // let work in progress finish, like LeakCanary
        val dump = "$directory/$test-${"%02d".format(++loops)}.hprof"
        shell("am dumpheap -g ${instrumentation.targetContext.packageName} $dump")
        awaitComplete(dump)
        val pulled = InstrumentationRegistry.getArguments().getString("additionalTestOutputDir") ?: return // set by Gradle
        shell("mkdir -p $pulled")
        shell("cp $dump $pulled/")
    }

    private fun awaitComplete(dump: String) { // am may return before the app has written it
        var size = 0L
        for (look in 1..60) {
            SystemClock.sleep(2_000)
            val before = size
            size = shell("stat -c %s $dump").trim().toLongOrNull() ?: 0
            if (size > 0 && size == before) return
        }
        error("$dump is not complete after 2 minutes")
    }

    private fun shell(command: String): String =
        AutoCloseInputStream(instrumentation.uiAutomation.executeShellCommand(command)).use { it.readBytes().decodeToString() }
}
