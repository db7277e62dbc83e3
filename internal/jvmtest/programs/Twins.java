package com.example.twins;

import com.example.stage.Console;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** Objects reachable by several paths of equal length. The seed sets the order of loading classes. */
public final class Twins {
    public static void main(String[] args) throws Exception {
        List<String> holders = Arrays.asList("Archive", "Bookmarks", "Cache", "Drafts", "Events", "Favorites");
        Collections.shuffle(holders, new Random(Long.parseLong(args[0])));
        for (String holder : holders) {
            Class.forName("com.example.twins.Twins$" + holder);
        }
        Object[] all = {new CartScreen(), new PhotoScreen(), new OrderScreen(), new PriceScreen(), new HelpScreen(), new WishScreen()};
        Archive.cart = all[0];
        Cache.cart = all[0];
        Favorites.cart = all[0];
        Bookmarks.photos.add(all[1]);
        Drafts.photos.add(all[1]);
        Archive.order = new Box(all[2]);
        Events.order = new Box(all[2]);
        Cache.prices.put("a", all[3]);
        Bookmarks.prices.put("b", all[3]);
        Favorites.help = new Box(all[4]);
        Drafts.help = new Tray(all[4]);
        Events.wish = all[5];
        Events.lastWish = all[5];
        Archive.wish = all[5];
        Console.serve(() -> {});
    }

    static final class CartScreen {}

    static final class PhotoScreen {}

    static final class OrderScreen {}

    static final class PriceScreen {}

    static final class HelpScreen {}

    static final class WishScreen {}

    static final class Box {
        final Object content;

        Box(Object content) {
            this.content = content;
        }
    }

    static final class Tray {
        final Object content;

        Tray(Object content) {
            this.content = content;
        }
    }

    static final class Archive {
        static Object cart;
        static Box order;
        static Object wish;
    }

    static final class Bookmarks {
        static List<Object> photos = new ArrayList<>();
        static Map<String, Object> prices = new HashMap<>();
    }

    static final class Cache {
        static Object cart;
        static Map<String, Object> prices = new HashMap<>();
    }

    static final class Drafts {
        static List<Object> photos = new ArrayList<>();
        static Tray help;
    }

    static final class Events {
        static Box order;
        static Object lastWish;
        static Object wish;
    }

    static final class Favorites {
        static Object cart;
        static Box help;
    }
}
