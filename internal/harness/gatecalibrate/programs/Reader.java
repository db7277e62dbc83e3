package com.example.reader;

import android.app.Activity;
import com.example.play.Player;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Leaks screens into values of threads, into a history, and where a request fails, into a map. */
public final class Reader {
    static final int EDITOR_BYTES = 25_000;

    public static void main(String[] args) throws Exception {
        Player.serve(
                args,
                //@action
                new Player.Action(2, () -> History.remember(new EditorScreen())),
                new Player.Action(2, Reader::draft),
                new Player.Action(4, Reader::read),
                new Player.Action(8, Reader::skim),
                new Player.Action(8, Player::load));
    }

    static final class EditorScreen extends Activity {
        final byte[] text = new byte[EDITOR_BYTES];
    }

    static final class History {
        static History latest;
        final History before;
        final Activity screen;

        History(Activity screen) {
            this.screen = screen;
            before = latest;
        }

        static void remember(Activity screen) {
            screen.finish();
            latest = new History(screen);
        }
    }

    static final class DraftScreen extends Activity {
        final byte[] text = Player.picture(20_000);
    }

    static final ThreadLocal<List<Object>> PAGES = ThreadLocal.withInitial(ArrayList::new);
    static final ExecutorService SAVING = Executors.newFixedThreadPool(3, work -> {
        Thread thread = new Thread(work, "saving");
        thread.setDaemon(true);
        return thread;
    });

    /** Whichever thread of the pool saves it keeps it. */
    static void draft() {
        DraftScreen screen = new DraftScreen();
        SAVING.execute(() -> PAGES.get().add(screen));
        screen.finish();
    }

    static final class ArticleScreen extends Activity {
        final byte[] pixels = Player.picture(40_000);
    }

    static final class Requests {
        static final Map<Integer, Object> failed = new ConcurrentHashMap<>();
    }

    /** Three in ten requests fail; who asked is kept for another try. */
    static void read() {
        ArticleScreen screen = new ArticleScreen();
        if (Player.random.nextInt(10) < 3) {
            Requests.failed.put(Requests.failed.size(), screen);
        }
        screen.finish();
    }

    static final class PreviewScreen extends Activity {
        final byte[] pixels = Player.picture(50_000);
    }

    static void skim() {
        Player.closeSlowly(new PreviewScreen());
    }

    //@class
}
