package com.example.market;

import com.example.stage.Console;
import java.util.*;
import java.util.concurrent.*;

/** Screens that leak, each held in a different way; replacing texts refactors their holders. */
public final class Market {
    public static void main(String[] args) throws Exception {
        Console.serve(Market::visit);
    }

    static void visit() {
        //@visit
        new CartScreen().open();
        Tracker.opened(new ListScreen());
        Session.get().remember(new ProfileScreen());
        new PhotoScreen().open();
        Help.last = new HelpScreen();
        About.last = Help.last;
        Orders.add(new OrderScreen());
    }

    interface Listener {
        void changed(Object what);
    }

    static final class EventBus {
        static final List<Listener> listeners = new ArrayList<>();
    }

    static final class CartScreen {
        final byte[] pixels = new byte[2000];
        Object seen;

        void open() {
            //@cart
            EventBus.listeners.add(what -> changed(what));
        }

        void changed(Object what) {
            seen = what;
        }
    }

    static final class ListScreen {
        final byte[] pixels = new byte[2200];
    }

    static final class Tracker {
        static final Collection<Object> screens = new ArrayList<>();

        static void opened(Object screen) {
            screens.add(screen);
        }
    }

    static final class ProfileScreen {
        final byte[] pixels = new byte[2400];
    }

    static class Shared {
        //@shared
    }

    static final class Session extends Shared {
        private static final Session SESSION = new Session();
        final Map<Id, Object> profiles = new HashMap<>();

        static Session get() {
            return SESSION;
        }

        void remember(Object screen) {
            profiles.put(new Id(profiles.size()), screen);
        }
    }

    static final class Id implements Comparable<Id> {
        final int number;

        Id(int number) {
            this.number = number;
        }

        @Override
        public int hashCode() {
            return number;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Id && ((Id) other).number == number;
        }

        @Override
        public int compareTo(Id other) {
            return Integer.compare(number, other.number);
        }
    }

    static final class Worker {
        static final Queue<Runnable> tasks = new ArrayDeque<>();
    }

    static final class PhotoScreen {
        final byte[] pixels = new byte[2600];
        int uploads;

        void open() {
            //@photo
            Worker.tasks.add(
                    new Runnable() {
                        @Override
                        public void run() {
                            uploads++;
                        }
                    });
        }
    }

    static final class HelpScreen {
        final byte[] pixels = new byte[2800];
    }

    static final class Help {
        static Object last;
    }

    /** Holds the same objects as Help: the two paths have the same length. */
    static final class About {
        static Object last;
    }

    static final class OrderScreen {
        final byte[] pixels = new byte[3000];
    }

    static final class Order {
        final Object screen;
        Order next;

        Order(Object screen) {
            this.screen = screen;
        }
    }

    static final class Orders {
        static Order first;

        static void add(Object screen) {
            Order order = new Order(screen);
            order.next = first;
            first = order;
        }
    }

    //@class
}
