package android.os;

public final class SystemClock {
    public static void sleep(long ms) {
        System.out.println("sleep " + ms);
    }
}
