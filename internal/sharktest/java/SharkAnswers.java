import java.io.File;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import shark.AndroidMetadataExtractor;
import shark.AndroidObjectInspectors;
import shark.AndroidReferenceMatchers;
import shark.ApplicationLeak;
import shark.CloseableHeapGraph;
import shark.FilteringLeakingObjectFinder;
import shark.HeapAnalysis;
import shark.HeapAnalysisFailure;
import shark.HeapAnalysisSuccess;
import shark.HeapAnalyzer;
import shark.HeapObject;
import shark.HprofHeapGraph;
import shark.HprofIndex;
import shark.KeyedWeakReferenceFinder;
import shark.Leak;
import shark.LeakTrace;
import shark.LeakTraceObject;
import shark.LeakTraceReference;
import shark.LeakingObjectFinder;
import shark.LibraryLeak;
import shark.MetadataExtractor;
import shark.ObjectInspector;
import shark.ObjectInspectors;
import shark.OnAnalysisProgressListener;
import shark.ReferenceMatcher;

/**
 * SharkAnswers FILE analyzes heap dumps with Shark and prints one line of JSON for each dump. The
 * file has three lines for each dump: path, mode, finder.
 */
public final class SharkAnswers {
  /** The label in which our own inspector stores each object's ID, because Shark drops IDs. */
  private static final String ID = "\u0000id=";

  /** The bits of the dump's IDs, because Shark sign-extends IDs of four bytes. */
  private static long bits;

  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(System.out, false, "UTF-8");
    List<String> lines = Files.readAllLines(Paths.get(args[0]), StandardCharsets.UTF_8);
    for (int i = 0; i + 2 < lines.size(); i += 3) {
      Map<String, Object> answer;
      try {
        answer = answer(new File(lines.get(i)), lines.get(i + 1).equals("android"), lines.get(i + 2));
      } catch (Throwable e) {
        answer = failure(e);
      }
      StringBuilder json = new StringBuilder();
      write(json, answer);
      out.println(json);
    }
    out.flush();
  }

  private static Map<String, Object> failure(Throwable e) {
    Throwable cause = e;
    while (cause.getCause() != null) {
      cause = cause.getCause();
    }
    Map<String, Object> answer = new LinkedHashMap<>();
    StackTraceElement[] trace = cause.getStackTrace();
    answer.put("failure", cause + (trace.length > 0 ? " at " + trace[0] : ""));
    return answer;
  }

  private static Map<String, Object> answer(File dump, boolean android, String finder) throws Exception {
    Set<Long> found = new LinkedHashSet<>();
    HeapAnalysis analysis;
    try (CloseableHeapGraph graph =
        HprofHeapGraph.Companion.openHeapGraph(
            dump, null, HprofIndex.Companion.defaultIndexedGcRootTags())) {
      bits = graph.getIdentifierByteSize() == 4 ? 0xffffffffL : -1L;
      LeakingObjectFinder which = finder(finder, android);
      analysis =
          new HeapAnalyzer(OnAnalysisProgressListener.Companion.getNO_OP())
              .analyze(
                  dump,
                  graph,
                  g -> {
                    found.addAll(which.findLeakingObjectIds(g));
                    return found;
                  },
                  matchers(android),
                  true,
                  inspectors(android),
                  android ? AndroidMetadataExtractor.INSTANCE : MetadataExtractor.Companion.getNO_OP());
    }
    if (analysis instanceof HeapAnalysisFailure) {
      return failure(((HeapAnalysisFailure) analysis).getException());
    }
    HeapAnalysisSuccess success = (HeapAnalysisSuccess) analysis;
    Map<String, Object> answer = new LinkedHashMap<>();
    List<Long> leaking = new ArrayList<>();
    for (long id : found) {
      leaking.add(id & bits);
    }
    answer.put("leaking", leaking);
    answer.put("metadata", success.getMetadata());
    List<Object> leaks = new ArrayList<>();
    for (ApplicationLeak leak : success.getApplicationLeaks()) {
      leaks.add(leak(leak, "application"));
    }
    for (LibraryLeak leak : success.getLibraryLeaks()) {
      Map<String, Object> library = leak(leak, "library");
      library.put("pattern", leak.getPattern().toString());
      library.put("description", leak.getDescription());
      leaks.add(library);
    }
    answer.put("leaks", leaks);
    List<Object> unreachable = new ArrayList<>();
    for (LeakTraceObject object : success.getUnreachableObjects()) {
      unreachable.add(object(object));
    }
    answer.put("unreachable", unreachable);
    return answer;
  }

  private static LeakingObjectFinder finder(String finder, boolean android) {
    if (finder.equals("keyed")) {
      return KeyedWeakReferenceFinder.INSTANCE;
    }
    if (finder.equals("filter")) {
      return new FilteringLeakingObjectFinder(
          android
              ? AndroidObjectInspectors.Companion.getAppLeakingObjectFilters()
              : ObjectInspectors.Companion.getJdkLeakingObjectFilters());
    }
    if (!finder.startsWith("class:")) {
      throw new IllegalArgumentException("no finder " + finder);
    }
    String name = finder.substring("class:".length());
    List<FilteringLeakingObjectFinder.LeakingObjectFilter> filters = new ArrayList<>();
    filters.add(
        object ->
            object instanceof HeapObject.HeapInstance
                && ((HeapObject.HeapInstance) object).getInstanceClassName().equals(name));
    return new FilteringLeakingObjectFinder(filters);
  }

  private static List<ReferenceMatcher> matchers(boolean android) {
    if (android) {
      return AndroidReferenceMatchers.Companion.getAppDefaults();
    }
    return AndroidReferenceMatchers.Companion.buildKnownReferences(
        EnumSet.of(
            AndroidReferenceMatchers.REFERENCES,
            AndroidReferenceMatchers.FINALIZER_WATCHDOG_DAEMON,
            AndroidReferenceMatchers.MAIN));
  }

  private static List<ObjectInspector> inspectors(boolean android) {
    List<ObjectInspector> all =
        new ArrayList<>(
            android
                ? AndroidObjectInspectors.Companion.getAppDefaults()
                : ObjectInspectors.Companion.getJdkDefaults());
    all.add(reporter -> reporter.getLabels().add(ID + reporter.getHeapObject().getObjectId()));
    return all;
  }

  private static Map<String, Object> leak(Leak leak, String type) {
    Map<String, Object> out = new LinkedHashMap<>();
    out.put("type", type);
    out.put("signature", leak.getSignature());
    out.put("shortDescription", leak.getShortDescription());
    out.put("retainedBytes", leak.getTotalRetainedHeapByteSize());
    out.put("retainedObjects", leak.getTotalRetainedObjectCount());
    List<Object> traces = new ArrayList<>();
    for (LeakTrace trace : leak.getLeakTraces()) {
      traces.add(trace(trace));
    }
    out.put("traces", traces);
    return out;
  }

  private static Map<String, Object> trace(LeakTrace trace) {
    Map<String, Object> out = new LinkedHashMap<>();
    out.put("root", trace.getGcRootType().name());
    List<Object> path = new ArrayList<>();
    List<LeakTraceReference> plain = new ArrayList<>();
    for (int i = 0; i < trace.getReferencePath().size(); i++) {
      LeakTraceReference reference = trace.getReferencePath().get(i);
      Map<String, Object> step = new LinkedHashMap<>();
      step.put("origin", object(reference.getOriginObject()));
      step.put("kind", reference.getReferenceType().name());
      step.put("owner", reference.getOwningClassName());
      step.put("name", reference.getReferenceName());
      step.put("generic", reference.getReferenceGenericName());
      step.put("suspect", trace.referencePathElementIsSuspect(i));
      path.add(step);
      plain.add(
          new LeakTraceReference(
              plain(reference.getOriginObject()),
              reference.getReferenceType(),
              reference.getOwningClassName(),
              reference.getReferenceName()));
    }
    out.put("path", path);
    out.put("leaking", object(trace.getLeakingObject()));
    out.put("text", new LeakTrace(trace.getGcRootType(), plain, plain(trace.getLeakingObject())).toString());
    return out;
  }

  /** An object without our own label. */
  private static LeakTraceObject plain(LeakTraceObject object) {
    return new LeakTraceObject(
        object.getType(),
        object.getClassName(),
        labels(object),
        object.getLeakingStatus(),
        object.getLeakingStatusReason(),
        object.getRetainedHeapByteSize(),
        object.getRetainedObjectCount());
  }

  private static Set<String> labels(LeakTraceObject object) {
    Set<String> labels = new LinkedHashSet<>();
    for (String label : object.getLabels()) {
      if (!label.startsWith(ID)) {
        labels.add(label);
      }
    }
    return labels;
  }

  private static Map<String, Object> object(LeakTraceObject object) {
    Map<String, Object> out = new LinkedHashMap<>();
    for (String label : object.getLabels()) {
      if (label.startsWith(ID)) {
        out.put("id", Long.parseLong(label.substring(ID.length())) & bits);
      }
    }
    out.put("type", object.getType().name());
    out.put("class", object.getClassName());
    out.put("status", object.getLeakingStatus().name());
    out.put("reason", object.getLeakingStatusReason());
    out.put("labels", labels(object));
    Integer bytes = object.getRetainedHeapByteSize();
    Integer objects = object.getRetainedObjectCount();
    out.put("retainedBytes", bytes == null ? -1 : bytes);
    out.put("retainedObjects", objects == null ? -1 : objects);
    return out;
  }

  private static void write(StringBuilder out, Object value) {
    if (value == null) {
      out.append("null");
    } else if (value instanceof Map) {
      String comma = "{";
      for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
        out.append(comma);
        write(out, entry.getKey());
        out.append(":");
        write(out, entry.getValue());
        comma = ",";
      }
      out.append(comma.equals("{") ? "{}" : "}");
    } else if (value instanceof Collection) {
      String comma = "[";
      for (Object element : (Collection<?>) value) {
        out.append(comma);
        write(out, element);
        comma = ",";
      }
      out.append(comma.equals("[") ? "[]" : "]");
    } else if (value instanceof Long) {
      out.append(Long.toUnsignedString((Long) value));
    } else if (value instanceof String) {
      quote(out, (String) value);
    } else {
      out.append(value);
    }
  }

  private static void quote(StringBuilder out, String text) {
    out.append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < ' ' || c > '~') {
        out.append(String.format("\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    out.append('"');
  }
}
