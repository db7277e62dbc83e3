package android.os;

import java.io.ByteArrayInputStream;
import java.io.FilterInputStream;

public class ParcelFileDescriptor {
    final byte[] output;

    public ParcelFileDescriptor(byte[] output) {
        this.output = output;
    }

    public static class AutoCloseInputStream extends FilterInputStream {
        public AutoCloseInputStream(ParcelFileDescriptor fd) {
            super(new ByteArrayInputStream(fd.output));
        }
    }
}
