import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.spi.ToolProvider;

/**
 * Runs javac in several folders. The arguments are the common options of javac, then the names of
 * the folders. A single JVM needs a fraction of the time that one JVM per folder would need, because
 * javac is slow until it is warm.
 */
final class Javac {
    public static void main(String[] args) {
        ToolProvider javac = ToolProvider.findFirst("javac").orElseThrow();
        int options = List.of(args).indexOf("--");
        for (int i = options + 1; i < args.length; i++) {
            List<String> all = new ArrayList<>(List.of(args).subList(0, options));
            all.add("-d");
            all.add(args[i] + "/classes");
            for (File file : new File(args[i]).listFiles((dir, name) -> name.endsWith(".java"))) {
                all.add(file.getPath());
            }
            if (javac.run(System.out, System.err, all.toArray(new String[0])) != 0) {
                System.exit(1);
            }
        }
    }
}
