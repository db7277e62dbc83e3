package com.example.leaky;

import android.app.Activity;
import android.app.ActivityThread;
import java.io.FileInputStream;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import sun.misc.Signal;

/**
 * An app that leaks in one way at a known rate, or not at all. It stands in for an Android app on a host
 * device: the memory of a real process grows, as a reader of /proc sees it in a real app.
 *
 * <p>Usage: Leaky java|native|mapped|thread|control|warmup|cache|busy|files|private|screens|kept|list|buffers|filling|steady [--mb-per-h N] [--for-s N]
 * [--scale N]. The rate and the duration are in device time; one real second is N device seconds at
 * scale N. After --for-s the app continues without leaking.
 *
 * <p>warmup and cache grow without a leak: warmup approaches the memory that the rate allocates in
 * --for-s, cache allocates for ever and releases what is older than --for-s.
 *
 * <p>busy leaks like java and also makes garbage. files leaves four files open per MB.
 *
 * <p>screens opens and closes ten screens at each signal 28, WINCH. Half of them are held by tasks that
 * are due in 0.1 to 2 s of device time, and by nothing afterwards. kept does the same and keeps one
 * screen for ever.
 *
 * <p>list, buffers, filling and steady run one loop of a scenario at each signal 28: list keeps an object
 * of each, buffers 200 kB outside the Java heap, filling 200 kB of both until its cache is full after
 * five loops, steady nothing.
 *
 * <p>private leaks like java and thread, in a map whose keys are mail addresses and phone numbers, with
 * threads named after them.
 */
public final class Leaky {
  /** The holder of the Java leak: every session that was ever opened. */
  static final List<Session> OPEN_SESSIONS = new ArrayList<>();

  /** Memory outside the Java heap that is never freed. */
  static final List<ByteBuffer> LOST_BUFFERS = new ArrayList<>();

  /** The entries of the cache, the oldest first. */
  static final ArrayDeque<Session> CACHE = new ArrayDeque<>();

  /** Threads that never end. */
  static final List<Thread> FORGOTTEN_THREADS = new ArrayList<>();

  /** Sessions by mail address or phone number. */
  static final Map<String, Session> SESSIONS_OF = new HashMap<>();

  /** Files that are never closed. */
  static final List<FileInputStream> OPEN_FILES = new ArrayList<>();

  /** Prevents the allocations of the control from being optimized away. */
  static volatile Object scratch;

  static final int SESSION_BYTES = 8 << 10;
  static final int BUFFER_BYTES = 32 << 10;
  static final int MAPPED_BYTES = 256 << 10;

  /** The bytes that an open file counts as, to define a rate. */
  static final int FILE_BYTES = 256 << 10;

  /** The bytes that the cache releases between two collections. */
  static final int GARBAGE_BYTES = 16 << 20;

  /** The garbage of a busy app at a collection, in bytes. */
  static final int BUSY_GARBAGE_BYTES = 32 << 20;

  /** The garbage for each leaked object, in bytes. */
  static final int BUSY_GARBAGE = 4;

  /** Recursion depth of a forgotten thread, for a few hundred kB of stack. */
  static final int STACK_DEPTH = 1400;

  static final long TICK_NANOS = 50_000_000L;

  /** After --for-s, a warm-up has reached all but a twentieth of its level. */
  static final double WARMUP_PACE = 3;

  public static void main(String[] args) throws Exception {
    // ART collects garbage at signal 10 (runtime/signal_catcher.cc); HotSpot would die.
    Signal.handle(new Signal("USR1"), signal -> System.gc());
    Plan plan = new Plan(args);
    Grower grower = grower(plan);
    HeapUse use = new HeapUse();
    double goal = 0;
    double done = 0;
    long begin = System.nanoTime();
    while (true) {
      LockSupport.parkNanos(TICK_NANOS);
      use.tell();
      goal = plan.bytesAt((System.nanoTime() - begin) / 1e9);
      while (done < goal) {
        done += grower.grow();
      }
    }
  }

  static Grower grower(Plan plan) throws Exception {
    switch (plan.mode) {
      case "java":
        return Leaky::openSession;
      case "native":
        return Leaky::loseBuffer;
      case "mapped":
        return mappedGrower();
      case "thread":
        return threadGrower();
      case "control":
        return Leaky::churn;
      case "warmup":
        return Leaky::load;
      case "cache":
        return cacheGrower(plan.level());
      case "busy":
        return busyGrower();
      case "files":
        return Leaky::openFile;
      case "private":
        return Leaky::openPrivate;
      case "screens":
      case "kept":
        return screens(plan);
      case "list":
      case "buffers":
      case "filling":
      case "steady":
        return scenario(plan);
      default:
        throw new IllegalArgumentException("unknown mode: " + plan.mode);
    }
  }

  /** Allocates memory and returns the number of bytes. */
  interface Grower {
    double grow() throws Exception;
  }

  static double openSession() {
    Session s = new Session(OPEN_SESSIONS.size());
    OPEN_SESSIONS.add(s);
    return SESSION_BYTES + 64;
  }

  static double loseBuffer() {
    // allocateDirect clears the memory, so that every page becomes resident.
    LOST_BUFFERS.add(ByteBuffer.allocateDirect(BUFFER_BYTES));
    return BUFFER_BYTES + 16;
  }

  /** Each mapped part of the file is resident memory of the process, with a name in /proc. */
  static Grower mappedGrower() throws Exception {
    FileChannel file =
        FileChannel.open(Path.of("leak.bin"), StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE);
    return () -> {
      MappedByteBuffer part = file.map(FileChannel.MapMode.READ_WRITE, (long) LOST_BUFFERS.size() * MAPPED_BYTES, MAPPED_BYTES);
      for (int at = 0; at < MAPPED_BYTES; at += 4096) {
        part.put(at, (byte) 1);
      }
      LOST_BUFFERS.add(part);
      return MAPPED_BYTES;
    };
  }

  /** Allocates like the Java leak, but keeps nothing. */
  static double churn() {
    scratch = new Session(0);
    return SESSION_BYTES + 64;
  }

  /** An app loads both Java and native memory when it starts. */
  static double load() {
    double bytes = loseBuffer();
    for (int i = 0; i < BUFFER_BYTES / SESSION_BYTES; i++) {
      bytes += openSession();
    }
    return bytes;
  }

  /**
   * ART collects when a part of its heap is garbage. HotSpot would wait until the entire heap is touched,
   * which looks like a leak.
   */
  static Grower cacheGrower(double limit) {
    final double[] held = {0, 0}; // bytes in the cache, bytes of garbage
    return () -> {
      CACHE.addLast(new Session(CACHE.size()));
      held[0] += SESSION_BYTES + 64;
      if (held[0] > limit) {
        CACHE.removeFirst();
        held[0] -= SESSION_BYTES + 64;
        held[1] += SESSION_BYTES + 64;
      }
      if (held[1] > GARBAGE_BYTES) {
        System.gc();
        held[1] = 0;
      }
      return SESSION_BYTES + 64;
    };
  }

  /** The use of the heap is a sawtooth with a rising floor. */
  static Grower busyGrower() {
    final List<Session> garbage = new ArrayList<>();
    return () -> {
      // Short-lived garbage would be collected in the young generation, without effect.
      for (int i = 0; i < BUSY_GARBAGE; i++) {
        garbage.add(new Session(i));
      }
      if (garbage.size() > BUSY_GARBAGE_BYTES / SESSION_BYTES) {
        garbage.clear();
        System.gc();
      }
      return openSession();
    };
  }

  /** Each tenth session has a thread of its own. The prefix of the phone number occurs nowhere else. */
  static double openPrivate() throws Exception {
    int n = SESSIONS_OF.size();
    String mail = "alice" + n + "@example.org", phone = "+4917612" + n;
    SESSIONS_OF.put(n % 2 == 0 ? mail : phone, new Session(n));
    if (n % 10 == 0) {
      for (String name : new String[] {mail, phone, "call " + phone}) {
        forgetThread(name);
      }
    }
    return SESSION_BYTES + 64;
  }

  /** Screens that are never released. */
  static final List<Object> KEPT = new ArrayList<>();

  static final int SCREENS = 10;

  /** Does nothing by itself. An analysis takes a program with an ActivityThread for an Android app. */
  static Grower screens(Plan plan) {
    ScheduledExecutorService later = Executors.newSingleThreadScheduledExecutor();
    Random random = new Random(1);
    scratch = new ActivityThread();
    Signal.handle(
        new Signal("WINCH"),
        signal -> {
          for (int i = 0; i < SCREENS; i++) {
            Screen screen = new Screen();
            screen.destroy();
            if (plan.mode.equals("kept") && i == 0) {
              KEPT.add(screen);
            } else if (i % 2 == 0) {
              double seconds = (0.1 + 1.9 * random.nextDouble()) / plan.scale;
              later.schedule(screen::refresh, (long) (seconds * 1e9), TimeUnit.NANOSECONDS);
            }
          }
        });
    return () -> plan.mbPerHour * (1 << 20);
  }

  /** A screen of an app. */
  static final class Screen extends Activity {
    final byte[] pixels = new byte[SESSION_BYTES];
    int refreshed;

    void refresh() {
      refreshed++;
    }
  }

  /** The objects that loops of a scenario keep. */
  static final List<Item> ITEMS = new ArrayList<>();

  static final int FULL = 5;
  static final int LOOP_BYTES = 200 << 10;

  /** Does nothing by itself. */
  static Grower scenario(Plan plan) {
    Signal.handle(new Signal("WINCH"), signal -> loop(plan.mode));
    return () -> plan.mbPerHour * (1 << 20);
  }

  static void loop(String mode) {
    for (int i = 0; i < 20; i++) {
      churn();
    }
    if (mode.equals("list")) {
      ITEMS.add(new Item(ITEMS.size(), null));
    } else if (mode.equals("buffers")) {
      LOST_BUFFERS.add(ByteBuffer.allocateDirect(LOOP_BYTES));
    } else if (mode.equals("filling") && ITEMS.size() < FULL) {
      ITEMS.add(new Item(ITEMS.size(), ByteBuffer.allocateDirect(LOOP_BYTES)));
    }
  }

  /** An object that one loop keeps. */
  static final class Item {
    final int id;
    final ByteBuffer picture;

    Item(int id, ByteBuffer picture) {
      this.id = id;
      this.picture = picture;
    }
  }

  static double openFile() throws Exception {
    OPEN_FILES.add(new FileInputStream("/dev/null"));
    return FILE_BYTES;
  }

  /**
   * How much stack a recursion touches depends on the virtual machine, so that the first threads measure
   * it.
   */
  static Grower threadGrower() throws Exception {
    final int probes = 8;
    for (int i = 0; i < probes; i++) {
      forgetThread(); // loads classes and fills pools, which must not be measured
    }
    for (int i = 0; i < 1024; i++) {
      churn(); // touches the entire young generation, of which every thread has a share
    }
    long before = anonymousBytes();
    for (int i = 0; i < probes; i++) {
      forgetThread();
    }
    final double each = Math.max(64 << 10, (anonymousBytes() - before) / (double) probes);
    return () -> {
      forgetThread();
      return each;
    };
  }

  static void forgetThread() throws Exception {
    forgetThread("pool-3-thread-" + (FORGOTTEN_THREADS.size() + 1));
  }

  static void forgetThread(String name) throws Exception {
    Worker w = new Worker();
    Thread t = new Thread(null, w, name, 1 << 20);
    t.setDaemon(true);
    FORGOTTEN_THREADS.add(t);
    t.start();
    synchronized (w) {
      while (!w.deep) {
        w.wait();
      }
    }
  }

  /** Recurses once, so that its stack is resident, then waits for ever. */
  static final class Worker implements Runnable {
    boolean deep;

    @Override
    public void run() {
      scratch = descend(STACK_DEPTH, 1, 2, 3, 4, 5, 6, 7, 8);
      synchronized (this) {
        deep = true;
        notifyAll();
      }
      while (true) {
        LockSupport.park();
      }
    }

    static long descend(int left, long a, long b, long c, long d, long e, long f, long g, long h) {
      if (left == 0) {
        return a + b + c + d + e + f + g + h;
      }
      return 1 + descend(left - 1, b, c, d, e, f, g, h, a);
    }
  }

  /** Exact, unlike RssAnon in /proc/self/status, which the kernel counts per processor. */
  static long anonymousBytes() throws Exception {
    for (String line : Files.readAllLines(Path.of("/proc/self/smaps_rollup"))) {
      if (line.startsWith("Anonymous:")) {
        return Long.parseLong(line.replaceAll("[^0-9]", "")) << 10;
      }
    }
    throw new IllegalStateException("/proc/self/smaps_rollup has no Anonymous");
  }

  /** Repeatedly writes the used size of the heap in bytes, which dumpsys reads from the runtime on a phone. */
  static final class HeapUse {
    private final byte[] bytes = new byte[Long.BYTES];
    private final ByteBuffer number = ByteBuffer.wrap(bytes);
    private final RandomAccessFile file;

    HeapUse() throws Exception {
      String name = System.getProperty("heap.used");
      file = name == null ? null : new RandomAccessFile(name, "rw");
    }

    void tell() throws Exception {
      if (file == null) {
        return;
      }
      Runtime r = Runtime.getRuntime();
      number.putLong(0, r.totalMemory() - r.freeMemory());
      file.seek(0);
      file.write(bytes);
    }
  }

  /** A leaked object. */
  static final class Session {
    final int id;
    final byte[] payload = new byte[SESSION_BYTES];

    Session(int id) {
      this.id = id;
    }
  }

  /** The schedule of the leak. */
  static final class Plan {
    final String mode;
    private double mbPerHour = 300;
    private double seconds = Double.POSITIVE_INFINITY;
    private double scale = 1;

    Plan(String[] args) {
      mode = args[0];
      for (int i = 1; i < args.length; i += 2) {
        double value = Double.parseDouble(args[i + 1]);
        switch (args[i]) {
          case "--mb-per-h":
            mbPerHour = value;
            break;
          case "--for-s":
            seconds = value;
            break;
          case "--scale":
            scale = value;
            break;
          default:
            throw new IllegalArgumentException("unknown flag: " + args[i]);
        }
      }
    }

    /** The number of bytes that the rate allocates in --for-s. */
    double level() {
      return seconds * mbPerHour * (1 << 20) / 3600;
    }

    double bytesAt(double realSeconds) {
      double passed = realSeconds * scale;
      switch (mode) {
        case "warmup":
          return level() * -Math.expm1(-WARMUP_PACE * passed / seconds);
        case "cache":
          return passed * mbPerHour * (1 << 20) / 3600;
        default:
          return Math.min(passed, seconds) * mbPerHour * (1 << 20) / 3600;
      }
    }
  }
}
