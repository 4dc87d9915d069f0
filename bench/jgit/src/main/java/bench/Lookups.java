package bench;

import java.io.File;
import java.io.IOException;
import org.eclipse.jgit.internal.storage.file.PackIndex;
import org.eclipse.jgit.lib.MutableObjectId;
import org.eclipse.jgit.lib.ObjectId;

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
