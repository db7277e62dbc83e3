import java.io.File;
import java.io.PrintStream;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import kotlin.sequences.Sequence;
import shark.AndroidObjectInspectors;
import shark.CloseableHeapGraph;
import shark.FilteringLeakingObjectFinder;
import shark.HeapObject;
import shark.HprofHeapGraph;
import shark.HprofIndex;
import shark.KeyedWeakReferenceFinder;
import shark.ObjectInspector;
import shark.ObjectInspectors;
import shark.ObjectReporter;

/**
 * Inspections MODE DUMP... prints what Shark's inspectors say of each object of the dumps that is
 * no class, with a tab between the parts of a line: "dump" and the path; then for each object of
 * which they say something its ID, and texts after +, - or = for reasons to be leaking, reasons not
 * to be, and labels; then "leaking" with IDs and "watched" with IDs. An object whose inspection
 * ends with an exception has "failed" and no texts.
 */
public final class Inspections {
  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(System.out, false, "UTF-8");
    boolean android = args[0].equals("android");
    List<ObjectInspector> inspectors =
        android ? AndroidObjectInspectors.Companion.getAppDefaults() : ObjectInspectors.Companion.getJdkDefaults();
    for (int i = 1; i < args.length; i++) {
      out.println("dump\t" + args[i]);
      try (CloseableHeapGraph graph =
          HprofHeapGraph.Companion.openHeapGraph(
              new File(args[i]), null, HprofIndex.Companion.defaultIndexedGcRootTags())) {
        long bits = graph.getIdentifierByteSize() == 4 ? 0xffffffffL : -1L;
        Sequence<HeapObject> objects = graph.getObjects();
        for (Iterator<HeapObject> all = objects.iterator(); all.hasNext(); ) {
          HeapObject object = all.next();
          if (!(object instanceof HeapObject.HeapClass)) {
            inspect(out, object, inspectors, bits);
          }
        }
        FilteringLeakingObjectFinder finder =
            new FilteringLeakingObjectFinder(
                android
                    ? AndroidObjectInspectors.Companion.getAppLeakingObjectFilters()
                    : ObjectInspectors.Companion.getJdkLeakingObjectFilters());
        print(out, "leaking", finder.findLeakingObjectIds(graph), bits);
        print(out, "watched", KeyedWeakReferenceFinder.INSTANCE.findLeakingObjectIds(graph), bits);
      }
    }
    out.flush();
  }

  private static void inspect(PrintStream out, HeapObject object, List<ObjectInspector> inspectors, long bits) {
    ObjectReporter reporter = new ObjectReporter(object);
    String id = Long.toUnsignedString(object.getObjectId() & bits);
    try {
      for (ObjectInspector inspector : inspectors) {
        inspector.inspect(reporter);
      }
    } catch (RuntimeException e) {
      out.println(id + "\tfailed");
      return;
    }
    StringBuilder line = new StringBuilder();
    add(line, '+', reporter.getLeakingReasons());
    add(line, '-', reporter.getNotLeakingReasons());
    add(line, '=', reporter.getLabels());
    if (line.length() > 0) {
      out.println(id + line);
    }
  }

  private static void add(StringBuilder line, char kind, Collection<String> texts) {
    for (String text : texts) {
      // Which interface, Shark looks up in the classes of its own host.
      if (text.startsWith("Anonymous class implementing ") || text.equals("Anonymous subclass of java.lang.Object")) {
        continue;
      }
      line.append('\t').append(kind).append(text);
    }
  }

  private static void print(PrintStream out, String what, Set<Long> ids, long bits) {
    out.print(what);
    for (long id : ids) {
      out.print("\t" + Long.toUnsignedString(id & bits));
    }
    out.println();
  }
}
