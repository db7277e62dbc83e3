package com.example.chat;

import android.app.Activity;
import com.example.play.Player;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Leaks screens by values of a weak map that hold their keys, by futures that nobody completes,
 * and where a thread loses a race.
 */
public final class Chat {
    static final int ROOM_BYTES = 15_000;

    public static void main(String[] args) throws Exception {
        Player.serve(
                args,
                //@action
                new Player.Action(3, Chat::room),
                new Player.Action(1, Chat::call),
                new Player.Action(6, Chat::contact),
                new Player.Action(6, () -> Player.closeSlowly(new StickerScreen())),
                new Player.Action(8, Player::load));
    }

    static final class RoomScreen extends Activity {
        final byte[] messages = new byte[ROOM_BYTES];
    }

    static final class State {
        final RoomScreen of;

        State(RoomScreen of) {
            this.of = of;
        }
    }

    static final class Rooms {
        static final Map<Object, State> states = new WeakHashMap<>();
    }

    static void room() {
        RoomScreen screen = new RoomScreen();
        Rooms.states.put(screen, new State(screen));
        screen.finish();
    }

    static final class CallScreen extends Activity {
        final byte[] frames = Player.picture(60_000);
        Object answer;
    }

    static final class Line {
        static final CompletableFuture<Object> answered = new CompletableFuture<>();
    }

    static void call() {
        CallScreen screen = new CallScreen();
        Line.answered.thenAccept(answer -> screen.answer = answer);
        screen.finish();
    }

    static final class ContactScreen extends Activity {
        final byte[] photo = Player.picture(30_000);
    }

    static final class Presence {
        static final Set<Object> watchers = ConcurrentHashMap.newKeySet();
        static final ExecutorService NETWORK = Executors.newFixedThreadPool(2, work -> {
            Thread thread = new Thread(work, "network");
            thread.setDaemon(true);
            return thread;
        });
    }

    /** A screen that is closed before it is registered is registered for ever. */
    static void contact() throws Exception {
        ContactScreen screen = new ContactScreen();
        Presence.NETWORK.execute(() -> {
            pause(ThreadLocalRandom.current().nextInt(300_000));
            Presence.watchers.add(screen);
        });
        pause(ThreadLocalRandom.current().nextInt(1_500_000));
        Presence.watchers.remove(screen);
        screen.finish();
    }

    static void pause(int nanos) {
        long until = System.nanoTime() + nanos;
        while (System.nanoTime() < until) {
            Thread.onSpinWait();
        }
    }

    static final class StickerScreen extends Activity {
        final byte[] pixels = Player.picture(60_000);
    }

    //@class
}
