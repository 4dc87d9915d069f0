package bench;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.eclipse.jgit.internal.storage.file.PackIndex;
import org.eclipse.jgit.lib.Constants;
import org.eclipse.jgit.lib.MutableObjectId;
import org.eclipse.jgit.lib.ObjectId;
import org.eclipse.jgit.lib.ObjectReader;
import org.eclipse.jgit.lib.Repository;
import org.eclipse.jgit.storage.file.FileRepositoryBuilder;
import org.eclipse.jgit.storage.file.WindowCacheConfig;

/** What a pack index is used for: the same as in bench/src/bin/lookups/measure.rs. */
final class Lookups {
    private Lookups() {}

    static void run(File file, int runs, int most) throws IOException {
        ObjectId[] ids = sample(PackIndex.open(file), most);
        PackIndex index = null;
        for (int run = 0; run <= runs; run++) {
            // The heap may have no room for two of them.
            index = null;
            long start = System.nanoTime();
            index = PackIndex.open(file);
            boolean found = index.findOffset(ids[0]) >= 0;
            tell(run, "open and find one", start, 1, found);
        }
        for (int run = 0; run <= runs; run++) {
            long start = System.nanoTime();
            boolean found = true;
            for (ObjectId id : ids) {
                found &= index.findOffset(id) >= 0;
            }
            tell(run, "random find, each", start, ids.length, found);
        }
        MutableObjectId buffer = new MutableObjectId();
        for (int run = 0; run <= runs; run++) {
            long start = System.nanoTime();
            long sum = 0;
            for (PackIndex.MutableEntry entry : index) {
                entry.copyOidTo(buffer);
                sum ^= entry.getOffset() ^ buffer.getFirstByte();
            }
            tell(run, "scan of all", start, 1, sum != -1);
        }
        String name = file.getName();
        if (new File(file.getParent(), name.substring(0, name.length() - 3) + "pack").exists()) {
            index = null;
            commits(file.getParentFile().getParentFile().getParentFile(), ids, runs);
        }
    }

    /** Opens the repository and reads commits, each time anew. */
    private static void commits(File directory, ObjectId[] ids, int runs) throws IOException {
        List<ObjectId> commits = new ArrayList<>();
        try (Repository repository = open(directory);
                ObjectReader reader = repository.newObjectReader()) {
            for (ObjectId id : ids) {
                if (reader.open(id).getType() == Constants.OBJ_COMMIT) {
                    commits.add(id);
                }
                if (commits.size() == 1000) {
                    break;
                }
            }
        }
        for (int count = 1; count <= commits.size(); count *= 10) {
            for (int run = 0; run <= runs; run++) {
                new WindowCacheConfig().install();
                long start = System.nanoTime();
                long sum = 0;
                try (Repository repository = open(directory);
                        ObjectReader reader = repository.newObjectReader()) {
                    for (ObjectId id : commits.subList(0, count)) {
                        sum += reader.open(id, Constants.OBJ_COMMIT).getBytes().length;
                    }
                }
                tell(run, "open and read " + count + " commits", start, 1, sum > 0);
            }
        }
    }

    private static Repository open(File directory) throws IOException {
        return new FileRepositoryBuilder().setGitDir(directory).setMustExist(true).build();
    }

    private static void tell(int run, String what, long start, long count, boolean sound) {
        double seconds = (System.nanoTime() - start) / 1e9 / count;
        if (!sound) {
            throw new IllegalStateException("every id that is looked for is there");
        }
        if (run > 0) {
            System.out.println(what + "\t" + seconds);
        }
    }

    /** Ids of the index in random order. */
    private static ObjectId[] sample(PackIndex index, int most) {
        long step = Math.max(1, (index.getObjectCount() + most - 1) / most);
        ObjectId[] ids = new ObjectId[(int) ((index.getObjectCount() + step - 1) / step)];
        for (int at = 0; at < ids.length; at++) {
            ids[at] = index.getObjectId(at * step);
        }
        long state = 0x9E3779B97F4A7C15L;
        for (int at = ids.length - 1; at > 0; at--) {
            state = state * 6364136223846793005L + 1;
            int other = (int) ((state >>> 33) % (at + 1));
            ObjectId id = ids[at];
            ids[at] = ids[other];
            ids[other] = id;
        }
        return ids;
    }
}
