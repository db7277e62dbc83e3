package com.example.steady;

import com.example.stage.Console;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;

/** Does the work of com.example.shop.Leaks without keeping anything beyond its bounds. */
public final class Steady implements Console.Work {
    private int iteration;

    public static void main(String[] args) throws Exception {
        Console.serve(new Steady());
    }

    @Override
    public void once() throws Exception {
        iteration++;
        ImageCache.show(iteration);
        new CartScreen().visit();
        new OrderScreen().visit();
        DraftBook.edit();
        ProductCatalog.INSTANCE.browse(iteration);
        new UploadScreen().visit();
        new SyncScreen().visit();
    }
}

abstract class Screen {
    final byte[] picture = new byte[256];
    volatile boolean open = true;
}

/** Drops the least recently used entries. One iteration fills it. */
final class Recent<T> extends LinkedHashMap<String, T> {
    private static final int LIMIT = 2;

    Recent() {
        super(16, 0.75f, true);
    }

    @Override
    protected boolean removeEldestEntry(Map.Entry<String, T> eldest) {
        return size() > LIMIT;
    }
}

final class ImageCache {
    static final Map<String, Image> entries = new Recent<>();

    static void show(int number) {
        for (int i = 0; i < 3; i++) {
            entries.put("image-" + number + "-" + i, new Image());
        }
    }
}

final class Image {
    final byte[] pixels = new byte[512];
}

final class EventBus {
    interface Listener {
        void changed();
    }

    static final List<Listener> listeners = new ArrayList<>();
}

final class CartScreen extends Screen {
    void visit() {
        EventBus.Listener listener = () -> open = false;
        EventBus.listeners.add(listener);
        EventBus.listeners.remove(listener);
    }
}

final class OrderScreen extends Screen {
    void visit() {
        EventBus.Listener listener = new EventBus.Listener() {
            @Override
            public void changed() {
                open = false;
            }
        };
        EventBus.listeners.add(listener);
        EventBus.listeners.remove(listener);
    }
}

final class DraftBook {
    private static final ThreadLocal<DraftBook> current = ThreadLocal.withInitial(DraftBook::new);
    private static final ExecutorService writers = Executors.newFixedThreadPool(1, task -> {
        Thread thread = new Thread(task, "draft writer");
        thread.setDaemon(true);
        return thread;
    });

    final List<DraftScreen> pages = new ArrayList<>();

    static void edit() throws Exception {
        writers.submit(() -> {
            try {
                return current.get().pages.add(new DraftScreen());
            } finally {
                current.remove();
            }
        }).get();
    }
}

final class DraftScreen extends Screen {}

final class ProductCatalog {
    static final ProductCatalog INSTANCE = new ProductCatalog();

    final Map<String, ProductScreen> recent = new Recent<>();

    void browse(int number) {
        for (int i = 0; i < 2; i++) {
            recent.put("product-" + number + "-" + i, new ProductScreen());
        }
    }
}

final class ProductScreen extends Screen {}

final class UploadScreen extends Screen {
    void visit() throws InterruptedException {
        Upload upload = new Upload();
        upload.start();
        open = false;
        LockSupport.unpark(upload);
        upload.join();
    }

    final class Upload extends Thread {
        @Override
        public void run() {
            while (open) {
                LockSupport.park();
            }
        }
    }
}

final class SyncScreen extends Screen {
    void visit() throws InterruptedException {
        Thread thread = new Thread(new Sync(), "sync");
        thread.start();
        open = false;
        LockSupport.unpark(thread);
        thread.join();
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
