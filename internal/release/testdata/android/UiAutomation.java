package android.app;

import android.os.ParcelFileDescriptor;

/** A device on which a dump is complete when its size was asked for three times. */
public class UiAutomation {
    private int asked;

    public ParcelFileDescriptor executeShellCommand(String command) {
        System.out.println("shell " + command);
        String output = "";
        if (command.startsWith("am dumpheap")) {
            asked = 0;
        } else if (command.startsWith("stat")) {
            asked++;
            output = asked == 1 ? "0\n" : asked == 2 ? "70000\n" : Boolean.getBoolean("endless") ? asked + "00000\n" : "90000\n";
        }
        return new ParcelFileDescriptor(output.getBytes());
    }
}
