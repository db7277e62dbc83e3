import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedList;
import java.util.TreeMap;
import java.util.WeakHashMap;

/**
 * HeapMaker OBJECTS SEED fills its heap with about OBJECTS live objects, prints READY, and waits
 * for the end of its input, so that it does not outlive its parent process.
 *
 * <p>The same two numbers make the same graph: an entry of one large map in each round, elements
 * of lists, strings, a node of a graph whose links go anywhere, and now and then an entry of a
 * tree, a buffer, a small map and an entry of a weak map. In the end a thousand screens leak. A
 * dump of it has about 53 bytes an object.
 */
public final class HeapMaker {
  /** A value of the large map. Up to five of them are a chain. */
  static final class Account {
    final long number;
    final String name;
    final Account previous;
    int balance;

    Account(long number, String name, Account previous, int balance) {
      this.number = number;
      this.name = name;
      this.previous = previous;
      this.balance = balance;
    }
  }

  /** A node of the graph: one link to the next, two anywhere, so that cycles are long. */
  static final class Knot {
    final int number;
    Knot near;
    Knot far;
    Knot farther;
    Object load;

    Knot(int number) {
      this.number = number;
    }
  }

  /** A key of the weak map. Its hash is its own: an address would be another in each run. */
  static final class Key {
    final int number;

    Key(int number) {
      this.number = number;
    }

    @Override
    public int hashCode() {
      return number * 0x9e3779b9;
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof Key && ((Key) other).number == number;
    }
  }

  /** What leaks: a thousand in each heap, held in four ways. */
  static final class Screen {
    final int number;
    final String title;
    final byte[] picture;
    Object parent;

    Screen(int number, String title) {
      this.number = number;
      this.title = title;
      this.picture = new byte[200];
    }
  }

  /** A callback that holds a screen. */
  static final class Listener {
    final Screen screen;

    Listener(Screen screen) {
      this.screen = screen;
    }
  }

  static final HashMap<String, Account> accounts = new HashMap<>();
  static final ArrayList<Object> boxes = new ArrayList<>();
  static final LinkedList<Long> times = new LinkedList<>();
  static final TreeMap<Long, String> index = new TreeMap<>();
  static final WeakHashMap<Key, String> cache = new WeakHashMap<>();
  static final ArrayList<Key> keys = new ArrayList<>();
  static final ArrayList<Object> buffers = new ArrayList<>();
  static final ArrayList<LinkedHashMap<String, Object>> sessions = new ArrayList<>();
  static final ArrayList<Listener> listeners = new ArrayList<>();
  static Knot[] knots = new Knot[1024];

  private static final String[] NAMES = {
    "user", "account", "locale", "last", "address", "previous", "device", "owner", "token", "parent"
  };

  private static Account newest;
  private static int tied;
  private static long state;

  /** How many objects there are, without those of the virtual machine. */
  private static long made;

  public static void main(String[] args) throws Exception {
    long objects = Long.parseLong(args[0]);
    state = Long.parseLong(args[1]);
    for (int round = 0; made < objects; round++) {
      fill(round);
    }
    link();
    leak();
    forget();
    System.out.println("READY");
    System.out.flush();
    while (System.in.read() >= 0) {
      // The parent process closes the input once it has the dump.
    }
  }

  private static void fill(int round) {
    addAccount(round);
    boxes.add(Integer.valueOf(1000 + round));
    times.add(Long.valueOf(1L << 40 | round));
    made += 3;
    if (round % 2 == 0) {
      index.put(Long.valueOf(random()), text(6 + below(30)));
      made += 2;
    }
    tie();
    if (round % 4 == 0) {
      buffers.add(round % 8 == 0 ? new byte[below(350)] : new long[below(58)]);
      made++;
    }
    if (round % 16 == 0) {
      addSession();
    }
    if (round % 32 == 0) {
      addWeak(round);
    }
  }

  private static void addAccount(int round) {
    Account previous = round % 5 == 0 ? null : newest;
    String name = text(8 + below(16));
    newest = new Account(round, name, previous, below(1 << 20));
    accounts.put(name, newest);
    made += 2;
  }

  private static void tie() {
    if (tied == knots.length) {
      knots = Arrays.copyOf(knots, knots.length + knots.length / 2);
    }
    knots[tied] = new Knot(tied);
    tied++;
    made++;
  }

  /** Links the nodes, once all are there: links go back and forth. */
  private static void link() {
    for (int i = 0; i < tied; i++) {
      Knot k = knots[i];
      k.near = knots[(i + 1) % tied];
      k.far = knots[below(tied)];
      k.farther = i % 3 == 0 ? knots[below(tied)] : null;
      k.load = i % 8 == 0 ? boxes.get(below(boxes.size())) : null;
    }
  }

  /** Lets a thousand screens leak: through listeners, maps, the graph, and each other. */
  private static void leak() {
    Screen last = null;
    for (int i = 0; i < 1000; i++) {
      Screen screen = new Screen(i, text(12));
      made += 2;
      switch (i % 4) {
        case 0:
          listeners.add(new Listener(screen));
          made++;
          break;
        case 1:
          sessions.get(below(sessions.size())).put("screen", screen);
          made++;
          break;
        case 2:
          knots[below(tied)].load = screen;
          break;
        default:
          last.parent = screen;
      }
      last = screen;
    }
  }

  private static void addSession() {
    LinkedHashMap<String, Object> session = new LinkedHashMap<>();
    int entries = 2 + below(8);
    for (int i = 0; i < entries; i++) {
      session.put(NAMES[i], i % 2 == 0 ? text(4 + below(40)) : newest);
    }
    sessions.add(session);
    made += 2 + entries;
  }

  private static void addWeak(int round) {
    Key key = new Key(round);
    keys.add(key);
    cache.put(key, text(10));
    made += 2;
  }

  /** Lets go of every fourth key, once the weak map grows no more: its size is no matter of chance. */
  private static void forget() {
    for (int i = 0; i < keys.size(); i += 4) {
      keys.set(i, null);
    }
  }

  /** A string of n Latin letters, which is two objects. */
  private static String text(int n) {
    char[] letters = new char[n];
    for (int i = 0; i < n; ) {
      long r = random() >>> 4;
      for (int j = 0; j < 12 && i < n; j++, r >>>= 5) {
        letters[i++] = (char) ('a' + (r & 31) % 26);
      }
    }
    made += 2;
    return new String(letters);
  }

  private static int below(int n) {
    return (int) ((random() >>> 33) % n);
  }

  /** SplitMix64: Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014. */
  private static long random() {
    long z = state += 0x9e3779b97f4a7c15L;
    z = (z ^ z >>> 30) * 0xbf58476d1ce4e5b9L;
    z = (z ^ z >>> 27) * 0x94d049bb133111ebL;
    return z ^ z >>> 31;
  }
}
