package com.example.depot;

import com.example.stage.Console;
import java.util.concurrent.locks.LockSupport;

/** Starts threads of a given kind that never end, one per iteration. */
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

/** A thread class whose threads hold some data. */
final class Courier extends Thread {
    final byte[] parcel = new byte[2048];

    @Override
    public void run() {
        while (true) {
            LockSupport.park();
        }
    }
}

/** The same as a task, which the thread's frames may hold as well as the thread. */
final class Delivery implements Runnable {
    final byte[] parcel = new byte[2048];

    @Override
    public void run() {
        while (parcel.length > 0) {
            LockSupport.park();
        }
    }
}
