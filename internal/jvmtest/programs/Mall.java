package com.example.mall;

import com.example.stage.Console;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;

/**
 * Has every leak of this file at once. Its arguments are a seed and the number of objects other than
 * screens. A line with an at sign is a place where another build has additional code; such code
 * never captures a screen for longer than a call.
 */
public final class Mall implements Console.Work {
    static final int SCREENS = 19;

    private final Random random;
    private final int others;

    private Mall(long seed, int others) {
        random = new Random(seed);
        this.others = others;
    }

    public static void main(String[] args) throws Exception {
        Console.serve(new Mall(Long.parseLong(args[0]), Integer.parseInt(args[1])));
    }

    @Override
    public void once() throws Exception {
        List<Integer> numbers = new ArrayList<>();
        for (int i = 0; i < SCREENS + others; i++) {
            numbers.add(i);
        }
        Collections.shuffle(numbers, random);
        for (int number : numbers) {
            String key = Long.toString(random.nextLong(), 36);
            if (number < SCREENS) {
                open(number, key);
            } else {
                fill(number, key);
            }
        }
    }

    /** Unrelated objects in the holders of the screens. */
    private void fill(int number, String key) {
        switch (number % 5) {
            case 0:
                ImageCache.entries.put(key, new CachedImage(null));
                break;
            case 1:
                Sessions.open.put(key, key);
                break;
            case 2:
                Thumbnails.INSTANCE.recent.put(key, key);
                break;
            case 3:
                Owner owner = new Owner();
                Wishes.byOwner.put(owner, key);
                Sessions.others.add(owner);
                break;
            default:
                Sessions.others.add(key);
        }
    }

    private void open(int number, String key) throws Exception {
        switch (number) {
            case 0:
                LastViewed.product = new ProductScreen();
                break;
            case 1:
                ImageCache.entries.put(key, new CachedImage(new PhotoScreen()));
                break;
            case 2:
                Sessions.open.put(key, new SessionScreen());
                break;
            case 3:
                new CartScreen().open();
                break;
            case 4:
                new PriceScreen().open();
                break;
            case 5:
                new SearchScreen().open();
                break;
            case 6:
                new CheckoutScreen().open();
                break;
            case 7:
                DraftBook.edit();
                break;
            case 8:
                new UploadScreen().open();
                break;
            case 9:
                new SyncScreen().open();
                break;
            case 10:
                Thumbnails.INSTANCE.recent.put(key, new ThumbnailScreen());
                break;
            case 11:
                new EditorScreen().open();
                break;
            case 12:
                Reports.about(new PaymentScreen());
                break;
            case 13:
                Journal.note(new HelpScreen());
                break;
            case 14:
                new SettingsScreen().open();
                break;
            case 15:
                Shelf.put(new ProfileScreen());
                break;
            case 16:
                Catalog.byName.put(key, new CatalogScreen());
                break;
            case 17:
                Wishes.of(new Owner());
                break;
            default:
                new DealScreen().open();
        }
    }
}

abstract class Screen {
    final byte[] picture = new byte[64];
    volatile boolean open = true;
}

interface Listener {
    void changed();
}

/** A static field. */
final class LastViewed {
    static ProductScreen product;

    //@member
}

final class ProductScreen extends Screen {}

/** A map whose values hold the screens. */
final class ImageCache {
    //@member
    static final Map<String, CachedImage> entries = new HashMap<>();
}

final class CachedImage {
    private final PhotoScreen screen;

    CachedImage(PhotoScreen screen) {
        this.screen = screen;
    }

    boolean shown() {
        return screen != null && screen.open;
    }
}

final class PhotoScreen extends Screen {}

/** A concurrent map of objects of several classes. */
final class Sessions {
    //@member
    static final Map<String, Object> open = new ConcurrentHashMap<>();

    //@member
    static final List<Object> others = new ArrayList<>();
}

final class SessionScreen extends Screen {}

/** A list of lambdas. */
final class EventBus {
    //@member
    static final List<Listener> listeners = new ArrayList<>();
}

final class CartScreen extends Screen {
    //@member
    void open() {
        //@statement
        EventBus.listeners.add(() -> open = false);
        //@statement
    }

    //@member
    @Override
    public String toString() {
        //@statement
        return "cart";
    }
}

/** A set of instances of anonymous classes, held by an instance. */
final class PriceFeed {
    static final PriceFeed INSTANCE = new PriceFeed();

    //@member
    final Set<Listener> watchers = new HashSet<>();
}

final class PriceScreen extends Screen {
    //@member
    void open() {
        //@statement
        PriceFeed.INSTANCE.watchers.add(new Listener() {
            @Override
            public void changed() {
                open = false;
            }
        });
        //@statement
    }

    //@member
    @Override
    public String toString() {
        //@statement
        return "price";
    }
}

/** An anonymous class in an anonymous class. */
final class SearchIndex {
    //@member
    static final List<Listener> callbacks = new ArrayList<>();
}

final class SearchScreen extends Screen {
    //@member
    void open() {
        //@statement
        Listener outer = new Listener() {
            private int changes;

            @Override
            public void changed() {
                //@statement
                SearchIndex.callbacks.add(new Listener() {
                    @Override
                    public void changed() {
                        changes++;
                        open = false;
                    }
                });
            }
        };
        outer.changed();
    }
}

/** A named inner class. */
final class Clock {
    //@member
    static final List<Listener> tickers = new CopyOnWriteArrayList<>();
}

final class CheckoutScreen extends Screen {
    //@member
    void open() {
        Clock.tickers.add(new Ticker());
    }

    //@member
    final class Ticker implements Listener {
        @Override
        public void changed() {
            open = false;
        }
    }
}

/** A thread local of a pool thread. */
final class DraftBook {
    //@member
    private static final ThreadLocal<DraftBook> current = ThreadLocal.withInitial(DraftBook::new);

    //@member
    private static final ExecutorService writers = Executors.newFixedThreadPool(1, task -> {
        Thread thread = new Thread(task, "draft writer");
        thread.setDaemon(true);
        return thread;
    });

    //@member
    final List<DraftScreen> pages = new ArrayList<>();

    //@member
    static void edit() throws Exception {
        writers.submit(() -> current.get().pages.add(new DraftScreen())).get();
    }
}

final class DraftScreen extends Screen {}

/** A thread that is an inner class. */
final class UploadScreen extends Screen {
    //@member
    void open() {
        new Upload().start();
    }

    //@member
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

/** A thread that runs a lambda. */
final class SyncScreen extends Screen {
    //@member
    void open() {
        //@statement
        Thread thread = new Thread(() -> {
            while (open) {
                LockSupport.park();
            }
        }, "sync");
        thread.setDaemon(true);
        thread.start();
    }
}

/** A cache, held by an instance, whose limit is never reached. */
final class Thumbnails {
    static final Thumbnails INSTANCE = new Thumbnails();

    //@member
    final Map<String, Object> recent = new LinkedHashMap<>(16, 0.75f, true);
}

final class ThumbnailScreen extends Screen {}

/** A lambda in a lambda. */
final class History {
    //@member
    static final Deque<Runnable> undo = new ArrayDeque<>();
}

final class EditorScreen extends Screen {
    //@member
    void open() {
        Runnable close = () -> open = false;
        //@statement
        History.undo.push(() -> close.run());
    }
}

/** A local class with a captured variable. */
final class Reports {
    //@member
    static final List<Runnable> pending = new LinkedList<>();

    //@member
    static void about(PaymentScreen screen) {
        //@statement
        final class Report implements Runnable {
            @Override
            public void run() {
                screen.open = false;
            }
        }
        pending.add(new Report());
    }
}

final class PaymentScreen extends Screen {}

/** A custom linked list: the older a screen, the longer the path to it. */
final class Journal {
    private static Page last;

    //@member
    static void note(HelpScreen screen) {
        last = new Page(last, screen);
    }

    //@member
    static final class Page {
        private final Page previous;
        private final HelpScreen screen;

        Page(Page previous, HelpScreen screen) {
            this.previous = previous;
            this.screen = screen;
        }

        boolean shown() {
            return screen.open || previous != null && previous.shown();
        }
    }
}

final class HelpScreen extends Screen {}

/** A method reference. */
final class Settings {
    //@member
    static final List<Listener> watchers = new ArrayList<>();
}

final class SettingsScreen extends Screen {
    //@member
    void open() {
        //@statement
        Settings.watchers.add(this::close);
    }

    //@member
    private void close() {
        open = false;
    }
}

/** An array. */
final class Shelf {
    private static final Object[] slots = new Object[64];
    private static int used;

    //@member
    static void put(Object thing) {
        slots[used++ % slots.length] = thing;
    }
}

final class ProfileScreen extends Screen {}

/** A tree: the path to a screen depends on its key. */
final class Catalog {
    //@member
    static final Map<String, CatalogScreen> byName = new TreeMap<>();
}

final class CatalogScreen extends Screen {}

/** A weak map whose values hold their keys. */
final class Wishes {
    //@member
    static final Map<Owner, Object> byOwner = new WeakHashMap<>();

    //@member
    static void of(Owner owner) {
        byOwner.put(owner, new WishScreen(owner));
    }
}

final class Owner {}

final class WishScreen extends Screen {
    private final Owner owner;

    WishScreen(Owner owner) {
        this.owner = owner;
    }

    boolean of(Owner other) {
        return owner == other;
    }
}

/** A lambda in an anonymous class in a lambda. */
final class Deals {
    //@member
    static final List<Runnable> offers = new ArrayList<>();
}

final class DealScreen extends Screen {
    //@member
    void open() {
        //@statement
        Runnable later = () -> {
            //@statement
            new Runnable() {
                private int offers;

                @Override
                public void run() {
                    //@statement
                    Deals.offers.add(() -> {
                        offers++;
                        open = false;
                    });
                }
            }.run();
        };
        later.run();
    }
}
