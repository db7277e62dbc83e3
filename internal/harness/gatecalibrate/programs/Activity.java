package android.app;

/** As much of an Activity as shows that it is over. */
public class Activity {
    private boolean mDestroyed;

    public final void finish() {
        mDestroyed = true;
    }
}
