package analysis_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/jvmtest"
)

// collections lists the collections of java.util and subclasses that are
// typical of programs. class is the class name that a key contains for the
// collection. E is the class of the elements or, for a map, of the values.
var collections = []struct{ make, class string }{
	{"new HashMap<Object, E>()", "java.util.HashMap"},
	{"new HashMap<Object, E>() {}", "com.example.shelves.Shelves$# (java.util.HashMap)"},
	{"new LinkedHashMap<Object, E>()", "java.util.LinkedHashMap"},
	{"new LinkedHashMap<Object, E>() {}", "com.example.shelves.Shelves$# (java.util.LinkedHashMap)"},
	{"new MyMap<Object, E>()", "com.example.shelves.MyMap"},
	{"new TreeMap<Object, E>()", "java.util.TreeMap"},
	{"new MyTree<Object, E>()", "com.example.shelves.MyTree"},
	{"new Hashtable<Object, E>()", "java.util.Hashtable"},
	{"new IdentityHashMap<Object, E>()", "java.util.IdentityHashMap"},
	{"new WeakHashMap<Object, E>()", "java.util.WeakHashMap"},
	{"new WeakHashMap<Object, E>() {}", "com.example.shelves.Shelves$# (java.util.WeakHashMap)"},
	{"new ConcurrentHashMap<Object, E>()", "java.util.concurrent.ConcurrentHashMap"},
	{"new ConcurrentHashMap<Object, E>() {}", "com.example.shelves.Shelves$# (java.util.concurrent.ConcurrentHashMap)"},
	{"new ConcurrentSkipListMap<Object, E>()", "java.util.concurrent.ConcurrentSkipListMap"},
	{"new ArrayList<E>()", "java.util.ArrayList"},
	{"new MyList<E>()", "com.example.shelves.MyList"},
	{"new LinkedList<E>()", "java.util.LinkedList"},
	{"new LinkedList<E>() {}", "com.example.shelves.Shelves$# (java.util.LinkedList)"},
	{"new Vector<E>()", "java.util.Vector"},
	{"new Stack<E>()", "java.util.Stack"},
	{"new ArrayDeque<E>()", "java.util.ArrayDeque"},
	{"new PriorityQueue<E>()", "java.util.PriorityQueue"},
	{"new HashSet<E>()", "java.util.HashSet"},
	{"new LinkedHashSet<E>()", "java.util.LinkedHashSet"},
	{"new CopyOnWriteArrayList<E>()", "java.util.concurrent.CopyOnWriteArrayList"},
	{"new LinkedBlockingQueue<E>()", "java.util.concurrent.LinkedBlockingQueue"},
	{"new LinkedBlockingDeque<E>()", "java.util.concurrent.LinkedBlockingDeque"},
	{"new ArrayBlockingQueue<E>(1024)", "java.util.concurrent.ArrayBlockingQueue"},
	{"new PriorityBlockingQueue<E>()", "java.util.concurrent.PriorityBlockingQueue"},
	{"new ConcurrentLinkedQueue<E>()", "java.util.concurrent.ConcurrentLinkedQueue"},
	{"new ConcurrentLinkedDeque<E>()", "java.util.concurrent.ConcurrentLinkedDeque"},
	{"new LinkedTransferQueue<E>()", "java.util.concurrent.LinkedTransferQueue"},
	// These collections store their elements in another collection.
	{"new TreeSet<E>()", "java.util.TreeMap"},
	{"new ConcurrentSkipListSet<E>()", "java.util.concurrent.ConcurrentSkipListMap"},
	{"new CopyOnWriteArraySet<E>()", "java.util.concurrent.CopyOnWriteArrayList"},
	{"new DelayQueue<E>()", "java.util.PriorityQueue"},
	{"Collections.synchronizedMap(new LinkedHashMap<Object, E>())", "java.util.LinkedHashMap"},
	{"Collections.newSetFromMap(new IdentityHashMap<E, Boolean>())", "java.util.IdentityHashMap"},
}

// shelves returns a program that holds each collection in a field and adds an
// element to each of them in every iteration. Half of the keys have the same
// hash, so the tables contain trees.
func shelves() jvmtest.Files {
	var classes, fields, add strings.Builder
	for i, c := range collections {
		fmt.Fprintf(&classes, "final class Element%d extends Element { Element%[1]d(int number) { super(number); } }\n",
			i)
		made := strings.ReplaceAll(strings.ReplaceAll(c.make, "E>", fmt.Sprintf("Element%d>", i)), "<E,",
			fmt.Sprintf("<Element%d,", i))
		kind, call := fmt.Sprintf("Collection<Element%d>", i), "add("
		if strings.Contains(c.make, "<Object, ") {
			kind, call = fmt.Sprintf("Map<Object, Element%d>", i), "put(key, "
		}
		fmt.Fprintf(&fields, "    static final %s c%d = %s;\n", kind, i, made)
		fmt.Fprintf(&add, "            c%d.%snew Element%[1]d(number));\n", i, call)
	}
	return jvmtest.Files{"Console.java": jvmtest.Shop()["Console.java"], "Shelves.java": `package com.example.shelves;

import java.util.*;
import java.util.concurrent.*;

abstract class Element implements Delayed {
    final int number;
    Element(int number) { this.number = number; }
    @Override public int compareTo(Delayed other) { return Integer.compare(number, ((Element) other).number); }
    @Override public long getDelay(TimeUnit unit) { return 1; }
    @Override public int hashCode() { return number % 2 == 0 ? number : 1; }
}

final class Key implements Comparable<Key> {
    final int number;
    Key(int number) { this.number = number; }
    @Override public int compareTo(Key other) { return Integer.compare(number, other.number); }
    @Override public int hashCode() { return number % 2 == 0 ? number : 1; }
}

class MyMap<K, V> extends LinkedHashMap<K, V> { MyMap() { super(16, 0.75f, true); } }
final class MyTree<K, V> extends TreeMap<K, V> {}
final class MyList<T> extends ArrayList<T> {}
` + classes.String() + `
public final class Shelves {
    static final List<Object> keys = new ArrayList<>();
    static int number;
` + fields.String() + `
    public static void main(String[] args) throws Exception {
        com.example.stage.Console.serve(() -> {
            Object key = new Key(++number * 7919 % 1009);
            keys.add(key);
` + add.String() + `        });
    }
}
`}
}

// A leak has the same key regardless of how many of its objects a collection
// holds and where in the collection they are.
func TestKeysOfCollections(t *testing.T) {
	t.Parallel()
	j := jvmtest.New(t)
	var classes []string
	for i := range collections {
		classes = append(classes, fmt.Sprintf("com.example.shelves.Element%d", i))
	}
	p := j.Start(t, j.Compile(t, shelves()), "com.example.shelves.Shelves")
	total, texts := 0, map[string]string{}
	for _, iterations := range []int{1, 1, 300} {
		p.Do(t, iterations)
		total += iterations
		r := readJVM(t, p.Dump(t)).analyze(t, nil, classes...)
		checkNoWarning(t, r)
		found := map[string]int{}
		for i := range r.Leaks {
			l := &r.Leaks[i]
			found[l.Class] += l.Instances
			text := strings.Join(l.KeyText, "\n")
			if texts[l.Class] == "" {
				texts[l.Class] = text
			}
			if text != texts[l.Class] {
				t.Errorf("%s with %d elements: got key text %q, want %q", l.Class, total, text, texts[l.Class])
			}
		}
		for i, class := range classes {
			if found[class] != total {
				t.Errorf("%s: %d of %d elements leak", collections[i].make, found[class], total)
			}
		}
	}
	for i, class := range classes {
		if text := texts[class]; !strings.HasPrefix(text, fmt.Sprintf("com.example.shelves.Shelves.c%d\n", i)) ||
			!strings.HasSuffix(text, "\n"+collections[i].class+".[x]") {
			t.Errorf("%s: %q", collections[i].make, text)
		}
	}
}
