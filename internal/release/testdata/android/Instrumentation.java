package android.app;

import android.content.Context;

public class Instrumentation {
    private final UiAutomation automation = new UiAutomation();

    public UiAutomation getUiAutomation() {
        return automation;
    }

    public Context getTargetContext() {
        return new Context();
    }
}
