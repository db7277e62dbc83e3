package com.example.shop;

import android.app.Activity;
import com.example.play.Player;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Leaks screens into a list, by lambdas in a bus, and the latest by a static field. */
public final class Shop {
    static final int CART_BYTES = 37_000;

    public static void main(String[] args) throws Exception {
        Player.serve(
                args,
                //@action
                new Player.Action(3, () -> Tracker.opened(new ListScreen())),
                new Player.Action(2, () -> new CartScreen().open()),
                new Player.Action(1, Shop::help),
                new Player.Action(10, Shop::browse),
                new Player.Action(8, Player::load));
    }

    static final class ListScreen extends Activity {
        final byte[] pixels = Player.picture(80_000);
    }

    static final class Tracker {
        static final List<Object> screens = new ArrayList<>();

        static void opened(ListScreen screen) {
            screen.finish();
            screens.add(screen);
        }
    }

    interface Listener {
        void changed(Object what);
    }

    static final class EventBus {
        static final List<Listener> listeners = new ArrayList<>();
    }

    static final class CartScreen extends Activity {
        final byte[] pixels = new byte[CART_BYTES];
        Object seen;

        void open() {
            EventBus.listeners.add(what -> seen = what);
            finish();
        }
    }

    static final class HelpScreen extends Activity {
        final byte[] pixels = new byte[200_000];
        static HelpScreen last;
    }

    static void help() {
        HelpScreen.last = new HelpScreen();
        HelpScreen.last.finish();
    }

    static final class ProductScreen extends Activity {
        final byte[] pixels = Player.picture(30_000);
    }

    /** Half of the screens are held for a while after they are closed. */
    static void browse() {
        ProductScreen screen = new ProductScreen();
        if (Player.random.nextBoolean()) {
            Player.closeSlowly(screen);
        } else {
            screen.finish();
        }
    }

    //@class
}
