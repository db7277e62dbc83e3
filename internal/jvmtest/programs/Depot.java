package com.example.depot;

import com.example.stage.Console;
import java.util.concurrent.locks.LockSupport;

/** Starts threads that never end, of the kind that it is told: each iteration one. */
public final class Depot implements Console.Work {
    private final String kind;

    private Depot(String kind) {
        this.kind = kind;
    }

    public static void main(String[] kind) throws Exception {
        Console.serve(new Depot(kind[0]));
    }

    @Override
    public void once() throws Exception {
        Thread thread = kind.equals("courier") ? new Courier() : new Thread(new Delivery(), "delivery");
        thread.setDaemon(true);
        thread.start();
    }
}

/** A class of threads, with what they carry. */
final class Courier extends Thread {
    final byte[] parcel = new byte[2048];

    @Override
    public void run() {
        while (true) {
            LockSupport.park();
        }
    }
}

/** The same as a task: the thread's frames may hold it as well as the thread. */
final class Delivery implements Runnable {
    final byte[] parcel = new byte[2048];

    @Override
    public void run() {
        while (parcel.length > 0) {
            LockSupport.park();
        }
    }
}
