package android.app;

/** As much of an activity as tells that it is over. */
public class Activity {
  private boolean mDestroyed;

  public void destroy() {
    mDestroyed = true;
  }
}
