package com.example.play;

import android.app.Activity;
import com.sun.management.HotSpotDiagnosticMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Plays loops of a scenario in an app and dumps the heap after each: for a number on a line, that
 * many. It ends with its input.
 *
 * <p>Arguments: script or monkey, a seed, how many steps monkey takes between two dumps, how many
 * milliseconds the app is left alone before a dump, the folder of the dumps.
 */
public final class Player {
    /** One thing that a user does. */
    public interface Step {
        void take() throws Exception;
    }

    /** A step, and how often a script takes it in a loop. Monkey takes it as often on average. */
    public static final class Action {
        final int times;
        final Step step;

        public Action(int times, Step step) {
            this.times = times;
            this.step = step;
        }
    }

    public static Random random;

    private static final int CACHE_BYTES = 8 << 20;
    private static int cached;
    private static final Map<Integer, byte[]> CACHE = new LinkedHashMap<>(16, 0.75f, true);
    private static final ScheduledThreadPoolExecutor LATER = new ScheduledThreadPoolExecutor(1, work -> {
        Thread thread = new Thread(work, "later");
        thread.setDaemon(true);
        return thread;
    });

    private Player() {}

    public static void serve(String[] args, Action... actions) throws Exception {
        boolean monkey = args[0].equals("monkey");
        random = new Random(Long.parseLong(args[1]));
        int steps = Integer.parseInt(args[2]);
        long quiet = Long.parseLong(args[3]);
        Class.forName("android.app.ActivityThread");
        HotSpotDiagnosticMXBean machine = ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
        List<Step> script = new ArrayList<>();
        for (Action action : actions) {
            script.addAll(Collections.nCopies(action.times, action.step));
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        int dumps = 0;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            for (int n = Integer.parseInt(line); n > 0; n--) {
                play(monkey ? walk(script, steps) : shuffled(script));
                Thread.sleep(quiet);
                machine.dumpHeap(args[4] + "/" + ++dumps + ".hprof", true);
            }
            System.out.println("done");
        }
    }

    private static List<Step> shuffled(List<Step> script) {
        List<Step> order = new ArrayList<>(script);
        Collections.shuffle(order, random);
        return order;
    }

    private static List<Step> walk(List<Step> script, int steps) {
        List<Step> order = new ArrayList<>();
        while (order.size() < steps) {
            order.add(script.get(random.nextInt(script.size())));
        }
        return order;
    }

    /** Takes steps, a few milliseconds each, so that a loop takes longer than what it delays. */
    private static void play(List<Step> order) throws Exception {
        for (Step step : order) {
            step.take();
            Thread.sleep(2 + random.nextInt(5));
        }
    }

    /** A picture of so many bytes, or up to twice as many. */
    public static byte[] picture(int bytes) {
        return new byte[bytes + random.nextInt(bytes)];
    }

    /** Loads one of a thousand pictures, of which the cache keeps 8 MB. */
    public static void load() {
        int url = random.nextInt(1000);
        if (CACHE.get(url) != null) {
            return;
        }
        byte[] picture = picture(150_000);
        CACHE.put(url, picture);
        cached += picture.length;
        while (cached > CACHE_BYTES) {
            int eldest = CACHE.keySet().iterator().next();
            cached -= CACHE.remove(eldest).length;
        }
    }

    /** Closes a screen that a delayed task holds a little longer. */
    public static void closeSlowly(Activity screen) {
        screen.finish();
        LATER.schedule(screen::hashCode, 5 + random.nextInt(55), TimeUnit.MILLISECONDS);
    }
}
