package android.app;

/** Its presence says that a process is one of Android. */
public class ActivityThread {}
