package bench;

import java.io.File;
import org.eclipse.jgit.api.Git;
import org.eclipse.jgit.api.Status;
import org.eclipse.jgit.lib.NullProgressMonitor;
import org.eclipse.jgit.lib.ObjectInserter;

/** The command lines that the bench gives to JGit. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "version" -> System.out.println(
                    "jgit " + Git.class.getPackage().getImplementationVersion());
            case "clone", "clone-bare" -> Git.cloneRepository()
                    .setURI(arguments[1])
                    .setDirectory(new File(arguments[2]))
                    .setBare(arguments[0].equals("clone-bare"))
                    .call()
                    .close();
            case "checkout" -> {
                try (Git git = Git.open(new File("."))) {
                    git.checkout().setName(arguments[1]).call();
                }
            }
            case "index-pack" -> {
                try (Git git = Git.open(new File("."));
                        ObjectInserter inserter = git.getRepository().newObjectInserter()) {
                    inserter.newPackParser(System.in).parse(NullProgressMonitor.INSTANCE);
                    inserter.flush();
                }
            }
            case "status" -> {
                try (Git git = Git.open(new File("."))) {
                    Status status = git.status().call();
                    System.out.println(status.isClean() ? "clean" : "changed");
                }
            }
            case "lookups" -> Lookups.run(
                    new File(arguments[1]),
                    Integer.parseInt(arguments[2]),
                    Integer.parseInt(arguments[3]));
            default -> throw new IllegalArgumentException("unknown command " + arguments[0]);
        }
    }
}
