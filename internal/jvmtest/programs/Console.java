package com.example.stage;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;

/** Reads lines with a number and runs that many iterations. It ends when its input ends. */
public final class Console {
    public interface Work {
        void once() throws Exception;
    }

    private Console() {}

    public static void serve(Work work) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (int n = next(in); n > 0; n = next(in)) {
            for (; n > 0; n--) {
                work.once();
            }
            System.out.println("done");
        }
    }

    private static int next(BufferedReader in) throws IOException {
        String line = in.readLine();
        return line == null ? 0 : Integer.parseInt(line);
    }
}
