import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import shark.ApplicationLeak;
import shark.HeapAnalysisException;
import shark.HeapAnalysisFailure;
import shark.HeapAnalysisSuccess;
import shark.Leak;
import shark.LeakTrace;
import shark.LeakTraceObject;
import shark.LeakTraceReference;
import shark.LibraryLeak;
import shark.ReferencePattern;

/**
 * LeakTexts SEED N prints N reports of random leaks, as Shark prints them: in base64, behind lines
 * that say what Shark's objects say.
 */
public final class LeakTexts {
  private static Random random;

  public static void main(String[] args) {
    random = new Random(Long.parseLong(args[0]));
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < Integer.parseInt(args[1]); i++) {
      List<ApplicationLeak> leaks = new ArrayList<>();
      List<LibraryLeak> known = new ArrayList<>();
      for (int n = random.nextInt(4); n > 0; n--) {
        leaks.add(new ApplicationLeak(traces(i * 10 + n)));
      }
      for (int n = random.nextInt(3); n > 0; n--) {
        known.add(
            new LibraryLeak(
                traces(i * 10 + n + 5),
                new ReferencePattern.InstanceFieldPattern(name(), "f" + i + "_" + n),
                "It is known since " + n + ".\nSecond line: Signature of it"));
      }
      List<LeakTraceObject> rest = new ArrayList<>();
      for (int n = random.nextInt(3); n > 0; n--) {
        rest.add(object(LeakTraceObject.LeakingStatus.LEAKING, LeakTraceObject.ObjectType.INSTANCE, true));
      }
      Map<String, String> metadata = new LinkedHashMap<>();
      metadata.put("Build.VERSION.SDK_INT", "34");
      metadata.put("App process name", "com.shop");
      HeapAnalysisSuccess success =
          new HeapAnalysisSuccess(new File("/data/" + i + ".hprof"), 1000000 + i, 5, 7, metadata, leaks, known, rest);
      for (ApplicationLeak leak : leaks) {
        leak(out, leak, "application");
      }
      for (LibraryLeak leak : known) {
        leak(out, leak, "library");
        out.append("pattern\t").append(encode(leak.getPattern().toString())).append("\n");
      }
      out.append("text\t").append(encode(success.toString())).append("\n");
    }
    HeapAnalysisFailure failure =
        new HeapAnalysisFailure(
            new File("/data/x.hprof"), 1, 2, 3, new HeapAnalysisException(new IllegalStateException("no such object")));
    out.append("failure\t").append(encode(failure.toString())).append("\n");
    System.out.print(out);
  }

  private static void leak(StringBuilder out, Leak leak, String type) {
    LeakTrace first = leak.getLeakTraces().get(0);
    out.append("leak");
    field(out, type);
    field(out, leak.getSignature());
    field(out, first.getLeakingObject().getClassName());
    field(out, first.getGcRootType().getDescription());
    field(out, String.valueOf(leak.getTotalRetainedHeapByteSize()));
    field(out, String.valueOf(leak.getLeakTraces().size()));
    field(out, first.toString());
    for (LeakTraceReference reference : kotlin.sequences.SequencesKt.toList(first.getSuspectReferenceSubpath())) {
      field(out, reference.getOriginObject().getClassName() + "\t" + reference.getReferenceGenericName());
    }
    out.append("\n");
  }

  private static void field(StringBuilder out, String text) {
    out.append("\t").append(encode(text));
  }

  private static String encode(String text) {
    return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
  }

  private static List<LeakTrace> traces(int id) {
    boolean sized = random.nextBoolean();
    List<LeakTrace> traces = new ArrayList<>();
    List<LeakTraceReference> path = new ArrayList<>();
    int steps = random.nextInt(6);
    int safe = steps == 0 ? 0 : random.nextInt(steps);
    for (int i = 0; i < steps; i++) {
      LeakTraceReference.ReferenceType type =
          LeakTraceReference.ReferenceType.values()[random.nextInt(LeakTraceReference.ReferenceType.values().length)];
      LeakTraceObject.ObjectType of =
          type == LeakTraceReference.ReferenceType.ARRAY_ENTRY
              ? LeakTraceObject.ObjectType.ARRAY
              : type == LeakTraceReference.ReferenceType.STATIC_FIELD
                  ? LeakTraceObject.ObjectType.CLASS
                  : LeakTraceObject.ObjectType.INSTANCE;
      LeakTraceObject origin =
          object(
              i < safe ? LeakTraceObject.LeakingStatus.NOT_LEAKING : LeakTraceObject.LeakingStatus.UNKNOWN, of, sized);
      String name = of == LeakTraceObject.ObjectType.ARRAY ? String.valueOf(random.nextInt(1000)) : "field" + id + "\u00e9$" + i;
      path.add(new LeakTraceReference(origin, type, origin.getClassName(), name));
    }
    LeakTraceObject leaking = object(LeakTraceObject.LeakingStatus.LEAKING, LeakTraceObject.ObjectType.INSTANCE, sized);
    for (int n = 1 + random.nextInt(3); n > 0; n--) {
      traces.add(
          new LeakTrace(
              LeakTrace.GcRootType.values()[random.nextInt(LeakTrace.GcRootType.values().length)], path, leaking));
    }
    return traces;
  }

  private static LeakTraceObject object(
      LeakTraceObject.LeakingStatus status, LeakTraceObject.ObjectType type, boolean sized) {
    Set<String> labels = new LinkedHashSet<>();
    for (int n = random.nextInt(3); n > 0; n--) {
      labels.add("mContext instance of " + name() + " with mDestroyed = " + random.nextBoolean());
    }
    Integer bytes = sized && status != LeakTraceObject.LeakingStatus.NOT_LEAKING ? random.nextInt(5000000) : null;
    String array = type == LeakTraceObject.ObjectType.ARRAY ? "[]" : "";
    return new LeakTraceObject(
        type,
        name() + array,
        labels,
        status,
        "ObjectWatcher was watching this because " + name() + " received Activity#onDestroy() callback",
        bytes,
        bytes == null ? null : 3);
  }

  private static String name() {
    StringBuilder name = new StringBuilder("com.shop");
    for (int n = random.nextInt(6); n > 0; n--) {
      name.append(".").append(new String[] {"cart", "checkout\u00fc", "a", "internal"}[random.nextInt(4)]);
    }
    return name + ".Class" + random.nextInt(50) + (random.nextInt(8) == 0 ? "$" + "Inner".repeat(1 + random.nextInt(30)) : "");
  }
}
