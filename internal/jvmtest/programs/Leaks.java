package com.example.shop;

import com.example.stage.Console;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;

/** Leaks in the ways named by its arguments. Each iteration adds to each leak. */
public final class Leaks implements Console.Work {
    private final String[] names;
    private int iteration;

    private Leaks(String[] names) {
        this.names = names;
    }

    public static void main(String[] names) throws Exception {
        Console.serve(new Leaks(names));
    }

    @Override
    public void once() throws Exception {
        iteration++;
        for (String name : names) {
            leak(name);
        }
    }

    private void leak(String name) throws Exception {
        switch (name) {
            case "image-cache":
                ImageCache.show(iteration);
                break;
            case "event-bus-lambda":
                new CartScreen().open();
                break;
            case "event-bus-anonymous":
                new OrderScreen().open();
                break;
            case "thread-local":
                DraftBook.edit();
                break;
            case "unbounded-lru":
                ProductCatalog.INSTANCE.browse(iteration);
                break;
            case "running-thread":
                new UploadScreen().open();
                break;
            case "running-task":
                new SyncScreen().open();
                break;
            default:
                throw new IllegalArgumentException(name);
        }
    }
}

/** A screen that a user opens and leaves. */
abstract class Screen {
    final byte[] picture = new byte[256];
    volatile boolean open = true;
}

/** A map whose entries are never removed. */
final class ImageCache {
    static final Map<String, Image> entries = new HashMap<>();

    static void show(int number) {
        for (int i = 0; i < 3; i++) {
            entries.put("image-" + number + "-" + i, new Image());
        }
    }
}

final class Image {
    final byte[] pixels = new byte[512];
}

/** A list of listeners that are never unregistered. */
final class EventBus {
    interface Listener {
        void changed();
    }

    static final List<Listener> listeners = new ArrayList<>();
}

final class CartScreen extends Screen {
    void open() {
        EventBus.listeners.add(() -> open = false);
    }
}

final class OrderScreen extends Screen {
    void open() {
        for (int i = 0; i < 2; i++) {
            new OrderScreen().listen();
        }
    }

    private void listen() {
        EventBus.listeners.add(new EventBus.Listener() {
            @Override
            public void changed() {
                open = false;
            }
        });
    }
}

/** An object that a pool thread keeps from one task to the next. */
final class DraftBook {
    private static final ThreadLocal<DraftBook> current = ThreadLocal.withInitial(DraftBook::new);
    private static final ExecutorService writers = Executors.newFixedThreadPool(1, task -> {
        Thread thread = new Thread(task, "draft writer");
        thread.setDaemon(true);
        return thread;
    });

    final List<DraftScreen> pages = new ArrayList<>();

    static void edit() throws Exception {
        writers.submit(() -> current.get().pages.add(new DraftScreen())).get();
    }
}

final class DraftScreen extends Screen {}

/** A single instance for the whole program. */
final class ProductCatalog {
    static final ProductCatalog INSTANCE = new ProductCatalog();

    final Map<String, ProductScreen> recent = new RecentProducts();

    void browse(int number) {
        for (int i = 0; i < 2; i++) {
            recent.put("product-" + number + "-" + i, new ProductScreen());
        }
    }
}

/** Drops the least recently used entries, but treats its limit in bytes as a number of entries. */
final class RecentProducts extends LinkedHashMap<String, ProductScreen> {
    private static final int LIMIT = 1 << 20;

    RecentProducts() {
        super(16, 0.75f, true);
    }

    @Override
    protected boolean removeEldestEntry(Map.Entry<String, ProductScreen> eldest) {
        return size() > LIMIT;
    }
}

final class ProductScreen extends Screen {}

/** Its thread keeps running after it is closed. */
final class UploadScreen extends Screen {
    void open() {
        new Upload().start();
    }

    final class Upload extends Thread {
        Upload() {
            super("upload");
            setDaemon(true);
        }

        @Override
        public void run() {
            while (open) {
                LockSupport.park();
            }
        }
    }
}

/** The same, with a task. */
final class SyncScreen extends Screen {
    void open() {
        Thread thread = new Thread(new Sync(), "sync");
        thread.setDaemon(true);
        thread.start();
    }

    final class Sync implements Runnable {
        @Override
        public void run() {
            while (open) {
                LockSupport.park();
            }
        }
    }
}
