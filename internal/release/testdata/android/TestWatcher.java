package org.junit.rules;

import org.junit.runner.Description;

public abstract class TestWatcher {
    protected void starting(Description description) {}

    /** Begins a test, as JUnit does. */
    public void begin() {
        starting(new Description());
    }
}
