package android.app;

/** Its presence shows that the process is one of Android. */
public final class ActivityThread {
    private ActivityThread() {}
}
