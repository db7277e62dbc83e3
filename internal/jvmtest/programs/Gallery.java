package com.example.gallery;

import com.example.stage.Console;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.ref.SoftReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.Timer;
import java.util.TimerTask;
import java.util.WeakHashMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** For each name, a way in which memory grows or does not. The payload is 20 000 bytes per iteration. */
public final class Gallery {
    static final int PAYLOAD = 20_000;
    static int iteration;

    public static void main(String[] args) throws Exception {
        if (args[0].equals("main-local")) {
            mainLocal();
            return;
        }
        Console.Work work = work(args[0]);
        Console.serve(() -> {
            iteration++;
            work.once();
        });
    }

    private static void mainLocal() throws Exception {
        List<byte[]> local = new ArrayList<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            for (int n = Integer.parseInt(line); n > 0; n--) {
                local.add(new byte[PAYLOAD]);
            }
            System.out.println("done");
        }
        System.exit(local.size() > 1 << 20 ? 1 : 0);
    }

    /** An object with the payload of an iteration. */
    static class Screen {
        final byte[] pixels;

        Screen() {
            this(PAYLOAD);
        }

        Screen(int bytes) {
            pixels = new byte[bytes];
        }

        void draw() {
            pixels[0]++;
        }
    }

    private static Console.Work work(String name) throws Exception {
        switch (name) {
            case "thread-local": return RequestContext::handle;
            case "thread-local-self": return SelfLocal::handle;
            case "class-loader": return Redeploy::deploy;
            case "weak-map": return () -> { Screen s = new Screen(); WeakRegistry.BY_SCREEN.put(s, new Object[] {s}); };
            case "no-equals": return () -> NoEquals.CACHE.put(new NoEquals.Key(1), new Screen());
            case "undo": return () -> History.undo = new History.Edit(History.undo);
            case "futures": return () -> { Screen s = new Screen(); Futures.LOGIN.thenAccept(x -> s.draw()); };
            case "delete-on-exit": return () -> new File("/nowhere/" + "x".repeat(PAYLOAD) + iteration).deleteOnExit();
            case "shutdown-hooks": return () -> { Screen s = new Screen(); Runtime.getRuntime().addShutdownHook(new Thread(s::draw)); };
            case "sub-list": return () -> SubLists.HEADS.add(Arrays.asList(new Screen(), new Screen(0)).subList(1, 2));
            case "intern": return () -> Interned.WORDS.add(("y".repeat(PAYLOAD) + iteration).intern());
            case "soft-cache": return () -> SoftCache.ENTRIES.put(iteration, new SoftReference<>(new Screen()));
            case "deque": return () -> BackStack.SCREENS.push(new Screen());
            case "lru": return () -> UnboundedLru.RECENT.put(iteration, new Screen());
            case "concurrent-map": return () -> Sessions.OPEN.put("session" + iteration, new Screen());
            case "timer": return () -> { Screen s = new Screen(); Reminders.schedule(s); };
            case "user-history": return () -> { for (int u = 0; u < 10; u++) { UserHistory.BY_USER.computeIfAbsent("user" + u, k -> new ArrayList<>()).add(new Screen(PAYLOAD / 10)); } };
            case "event-bus": return () -> { Screen s = new Screen(); EventBus.on("resume", x -> s.draw()); EventBus.on("pause", x -> s.draw()); };
            case "executor-queue": return () -> { Screen s = new Screen(); Uploads.POOL.execute(s::draw); };
            case "cancelled-tasks": return () -> { Screen s = new Screen(); Future<?> f = Ticks.POOL.schedule(s::draw, 9, TimeUnit.DAYS); f.cancel(false); };
            case "message-chain": return () -> { for (int i = 0; i < 500; i++) { Messages.head = new Messages.Message(Messages.head); } };
            case "disposables": return () -> { Screen s = new Screen(); CartViewModel.DISPOSABLES.add(new CartViewModel.Observer(s::draw)); };
            case "pending-queue": return () -> Reports.PENDING.add(new Screen());
            case "threads": return () -> daemon(Gallery::park).start();
            case "trie": return Trie::insert;
            case "statements": return () -> Connection.SHARED.open();
            case "direct": return () -> Buffers.ALL.add(ByteBuffer.allocateDirect(PAYLOAD));
            case "finalizer": return () -> { for (int i = 0; i < 4; i++) { new NativeHandle(); } System.gc(); };
            case "buffer": return () -> Journal.TEXT.append("z".repeat(PAYLOAD));
            case "same": return Repeats::add;
            case "inner-class": return () -> new Feed().watch();
            case "hash-set": return () -> Watchers.ALL.add(new Screen());
            case "properties": return () -> System.setProperty("key" + iteration, "p".repeat(PAYLOAD));
            case "big-value": return () -> Settings.VALUES.put("state", new byte[PAYLOAD * iteration]);
            case "singleton-list": return () -> Catalog.INSTANCE.pages.add(new Screen());
            // These do not leak.
            case "steady-lru": return () -> { for (int i = 0; i < 100; i++) { BoundedLru.RECENT.put(iteration * 100 + i, new Screen(200)); } };
            case "steady-strings": return () -> { String s = ""; for (int i = 0; i < 300; i++) { s += i; } if (s.isEmpty()) { throw new IllegalStateException(); } };
            case "steady-sessions": return () -> { Sessions.OPEN.put("s" + iteration % 7, new Screen()); Sessions.OPEN.remove("s" + (iteration + 3) % 7); };
            case "steady-screens": return () -> { BackStack.SCREENS.push(new Screen()); BackStack.SCREENS.pop(); };
            case "steady-weak": return () -> { WeakRegistry.BY_SCREEN.clear(); WeakRegistry.BY_SCREEN.put(new Screen(), "x"); };
            case "steady-proxies": return () -> { Runnable r = (Runnable) java.lang.reflect.Proxy.newProxyInstance(Gallery.class.getClassLoader(), new Class<?>[] {Runnable.class}, (p, m, a) -> null); r.run(); };
            // These fill up.
            case "fills-lru": return () -> { for (int i = 0; i < 40; i++) { BoundedLru.RECENT.put(iteration * 40 + i, new Screen(200)); } };
            case "fills-ring": return () -> { for (int i = 0; i < 30 && Ring.next < Ring.SLOTS.length; i++) { Ring.SLOTS[Ring.next++] = new Screen(200); } };
            case "fills-keys": return () -> { for (int i = 0; i < 40; i++) { Sessions.OPEN.put("k" + (iteration * 2654435761L + i * 40503L) % 700, new Screen(200)); } };
            case "fills-pool": return () -> { for (int i = 0; i < Math.max(1, 20 - iteration / 2); i++) { Pool.IDLE.add(new Screen(500)); } };
            default: throw new IllegalArgumentException(name);
        }
    }

    static void park() {
        byte[] stack = new byte[PAYLOAD];
        while (stack[0] == 0) {
            LockSupport.park();
        }
    }

    static final class RequestContext {
        static final ThreadLocal<List<byte[]>> HISTORY = ThreadLocal.withInitial(ArrayList::new);
        static final ExecutorService POOL = Executors.newFixedThreadPool(4, Gallery::daemon);

        static void handle() throws Exception {
            CountDownLatch all = new CountDownLatch(4);
            for (int i = 0; i < 4; i++) {
                POOL.submit(() -> {
                    HISTORY.get().add(new byte[PAYLOAD / 4]);
                    all.countDown();
                    all.await();
                    return null;
                });
            }
            all.await();
        }
    }

    static Thread daemon(Runnable r) {
        Thread t = new Thread(r);
        t.setDaemon(true);
        return t;
    }

    static final class SelfLocal {
        static final ExecutorService ONE = Executors.newSingleThreadExecutor(Gallery::daemon);

        static void handle() throws Exception {
            ONE.submit(() -> {
                ThreadLocal<Object> local = new ThreadLocal<>();
                local.set(new Object[] {local, new byte[PAYLOAD]});
            }).get();
        }
    }

    static final class Redeploy {
        static final List<Object> LISTENERS = new ArrayList<>();

        static void deploy() throws Exception {
            URL jar = Gallery.class.getProtectionDomain().getCodeSource().getLocation();
            URLClassLoader loader = new URLClassLoader(new URL[] {jar}, ClassLoader.getPlatformClassLoader());
            LISTENERS.add(loader.loadClass("com.example.gallery.Gallery$Plugin").getDeclaredConstructor().newInstance());
        }
    }

    /** Each deployment loads this class again. */
    public static final class Plugin {
        static final byte[] TABLE = new byte[10 * PAYLOAD];
    }

    static final class WeakRegistry {
        static final Map<Object, Object> BY_SCREEN = new WeakHashMap<>();
    }

    static final class NoEquals {
        static final Map<Key, Screen> CACHE = new HashMap<>();

        static final class Key {
            final int id;

            Key(int id) {
                this.id = id;
            }

            @Override
            public int hashCode() {
                return System.identityHashCode(this) + id;
            }
        }
    }

    static final class History {
        static Edit undo;

        static final class Edit {
            final Edit before;
            final Screen screen = new Screen();

            Edit(Edit before) {
                this.before = before;
            }
        }
    }

    static final class Futures {
        static final CompletableFuture<Object> LOGIN = new CompletableFuture<>();
    }

    static final class SubLists {
        static final List<List<Screen>> HEADS = new ArrayList<>();
    }

    static final class Interned {
        static final List<String> WORDS = new ArrayList<>();
    }

    static final class SoftCache {
        static final Map<Integer, SoftReference<Screen>> ENTRIES = new HashMap<>();
    }

    static final class BackStack {
        static final ArrayDeque<Screen> SCREENS = new ArrayDeque<>();
    }

    static final class UnboundedLru {
        static final Map<Integer, Screen> RECENT = new LinkedHashMap<>(16, 0.75f, true);
    }

    static final class BoundedLru {
        static final Map<Integer, Screen> RECENT = new LinkedHashMap<Integer, Screen>(16, 0.75f, true) {
            @Override
            protected boolean removeEldestEntry(Map.Entry<Integer, Screen> eldest) {
                return size() > 1000;
            }
        };
    }

    static final class Sessions {
        static final Map<String, Screen> OPEN = new ConcurrentHashMap<>();
    }

    static final class Reminders {
        static final Timer TIMER = new Timer(true);

        static void schedule(Screen s) {
            TIMER.schedule(new TimerTask() {
                @Override
                public void run() {
                    s.draw();
                }
            }, 1L << 40);
        }
    }

    static final class UserHistory {
        static final Map<String, List<Screen>> BY_USER = new HashMap<>();
    }

    interface Listener {
        void on(Object event);
    }

    static final class EventBus {
        static final Map<String, List<Listener>> LISTENERS = new HashMap<>();

        static void on(String event, Listener l) {
            LISTENERS.computeIfAbsent(event, k -> new ArrayList<>()).add(l);
        }
    }

    static final class Uploads {
        static final ThreadPoolExecutor POOL = new ThreadPoolExecutor(1, 1, 1, TimeUnit.DAYS, new LinkedBlockingQueue<>(), Gallery::daemon);

        static {
            POOL.execute(Gallery::park);
        }
    }

    static final class Ticks {
        static final ScheduledThreadPoolExecutor POOL = new ScheduledThreadPoolExecutor(1, Gallery::daemon);
    }

    static final class Messages {
        static Message head;

        static final class Message {
            final Message next;
            final long when = 1;

            Message(Message next) {
                this.next = next;
            }
        }
    }

    static final class CartViewModel {
        static final Set<Observer> DISPOSABLES = new HashSet<>();

        static final class Observer {
            final Runnable onNext;

            Observer(Runnable onNext) {
                this.onNext = onNext;
            }
        }
    }

    static final class Reports {
        static final ConcurrentLinkedQueue<Screen> PENDING = new ConcurrentLinkedQueue<>();
    }

    static final class Trie {
        static final Trie ROOT = new Trie();
        final Map<Integer, Trie> children = new HashMap<>();
        byte[] value;

        static void insert() {
            int word = iteration * 0x9E3779B9;
            Trie at = ROOT;
            for (int i = 0; i < 4; i++, word >>>= 3) {
                at = at.children.computeIfAbsent(word & 7, k -> new Trie());
            }
            for (int i = 0; i < 2; i++) {
                at = at.children.computeIfAbsent(1000 * iteration + i, k -> new Trie());
                at.value = new byte[PAYLOAD / 2];
            }
        }
    }

    static final class Connection {
        static final Connection SHARED = new Connection();
        final List<Statement> statements = new ArrayList<>();

        void open() {
            statements.add(new Statement(this));
        }

        static final class Statement {
            final Connection connection;
            final byte[] rows = new byte[PAYLOAD];

            Statement(Connection connection) {
                this.connection = connection;
            }
        }
    }

    static final class Buffers {
        static final List<ByteBuffer> ALL = new ArrayList<>();
    }

    static final class NativeHandle {
        final byte[] peer = new byte[PAYLOAD / 4];

        @Override
        protected void finalize() {
            park();
        }
    }

    static final class Journal {
        static final StringBuilder TEXT = new StringBuilder();
    }

    static final class Repeats {
        static final Object ONE = new Object();
        static Object[] all = new Object[0];

        static void add() {
            int n = all.length;
            all = Arrays.copyOf(all, n + PAYLOAD / 8);
            Arrays.fill(all, n, all.length, ONE);
        }
    }

    static final class Feed {
        static final List<Runnable> WATCHERS = new ArrayList<>();
        final Screen screen = new Screen();

        void watch() {
            WATCHERS.add(new Runnable() {
                @Override
                public void run() {
                    screen.draw();
                }
            });
        }
    }

    static final class Watchers {
        static final Set<Screen> ALL = new HashSet<>();
    }

    static final class Settings {
        static final Map<String, byte[]> VALUES = new HashMap<>();
    }

    static final class Catalog {
        static final Catalog INSTANCE = new Catalog();
        final List<Screen> pages = new ArrayList<>();
    }

    static final class Ring {
        static final Screen[] SLOTS = new Screen[750];
        static int next;
    }

    static final class Pool {
        static final List<Screen> IDLE = new ArrayList<>();
    }
}
