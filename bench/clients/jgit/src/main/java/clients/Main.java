package clients;

import java.io.File;
import java.io.FileInputStream;
import java.io.InputStream;
import java.io.PrintWriter;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.eclipse.jgit.api.Git;
import org.eclipse.jgit.api.TransportCommand;
import org.eclipse.jgit.lib.TextProgressMonitor;
import org.eclipse.jgit.transport.PushResult;
import org.eclipse.jgit.transport.RefSpec;
import org.eclipse.jgit.transport.RemoteRefUpdate;
import org.eclipse.jgit.transport.SshSessionFactory;
import org.eclipse.jgit.transport.TagOpt;
import org.eclipse.jgit.transport.UsernamePasswordCredentialsProvider;
import org.eclipse.jgit.transport.sshd.SshdSessionFactoryBuilder;

/** JGit as a client of a Git server. {@code ../README.md} describes the operations. */
public final class Main {
    /** JGit lacks the operation. */
    private static final int UNSUPPORTED = 9;

    private Main() {}

    public static void main(String[] arguments) {
        int status;
        try {
            trust(System.getenv("CLIENT_CA"));
            login(System.getenv("CLIENT_KEY"));
            status = run(arguments);
        } catch (Exception error) {
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                System.err.println("error: " + cause.getMessage());
            }
            status = 1;
        }
        System.exit(status);
    }

    private static int run(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "version":
                System.out.println(Git.class.getPackage().getImplementationVersion());
                return 0;
            case "clone":
                return copy(arguments[1], arguments[2], 0);
            case "shallow":
                return copy(arguments[1], arguments[2], 1);
            case "fetch":
                return fetch(arguments[1], 0);
            case "deepen":
                return fetch(arguments[1], Integer.parseInt(arguments[2]));
            case "push":
                return push(arguments);
            default:
                return UNSUPPORTED;
        }
    }

    private static int copy(String url, String directory, int depth) throws Exception {
        var command = Git.cloneRepository().setURI(url).setDirectory(new File(directory));
        command.setTagOption(TagOpt.FETCH_TAGS).setProgressMonitor(progress());
        if (depth > 0) {
            command.setDepth(depth);
        }
        configure(command).call().close();
        return 0;
    }

    private static int fetch(String directory, int depth) throws Exception {
        try (Git git = Git.open(new File(directory))) {
            var command = git.fetch().setTagOpt(TagOpt.FETCH_TAGS).setProgressMonitor(progress());
            if (depth > 0) {
                command.setDepth(depth);
            }
            System.err.print(configure(command).call().getMessages());
        }
        return 0;
    }

    private static int push(String[] arguments) throws Exception {
        List<RefSpec> specs = new ArrayList<>();
        for (int index = 2; index < arguments.length; index++) {
            specs.add(new RefSpec(arguments[index]));
        }
        int status = 0;
        try (Git git = Git.open(new File(arguments[1]))) {
            for (PushResult result : configure(git.push().setRefSpecs(specs)).call()) {
                System.err.print(result.getMessages());
                for (RemoteRefUpdate update : result.getRemoteUpdates()) {
                    boolean done = update.getStatus() == RemoteRefUpdate.Status.OK
                            || update.getStatus() == RemoteRefUpdate.Status.UP_TO_DATE;
                    if (!done) {
                        System.err.println(update.getRemoteName() + ": " + update.getStatus()
                                + " " + update.getMessage());
                        status = 1;
                    }
                }
            }
        }
        return status;
    }

    private static TextProgressMonitor progress() {
        return new TextProgressMonitor(new PrintWriter(System.err));
    }

    /** Sets the token. */
    private static <C extends TransportCommand<C, ?>> C configure(C command) {
        String token = System.getenv("CLIENT_TOKEN");
        if (token != null && !token.isEmpty()) {
            String user = System.getenv("CLIENT_USER");
            command.setCredentialsProvider(new UsernamePasswordCredentialsProvider(user, token));
        }
        return command;
    }

    /** Makes the authority in a file the one that signs certificates. */
    private static void trust(String authority) throws Exception {
        if (authority == null) {
            return;
        }
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (InputStream stream = new FileInputStream(authority)) {
            Certificate certificate =
                    CertificateFactory.getInstance("X.509").generateCertificate(stream);
            store.setCertificateEntry("authority", certificate);
        }
        var factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, factory.getTrustManagers(), null);
        SSLContext.setDefault(context);
        HttpsURLConnection.setDefaultSSLSocketFactory(context.getSocketFactory());
    }

    /** Takes the key in a file for SSH. The known hosts are those of the home directory. */
    private static void login(String key) {
        if (key == null) {
            return;
        }
        File home = new File(System.getenv("HOME"));
        SshSessionFactory.setInstance(new SshdSessionFactoryBuilder()
                .setHomeDirectory(home)
                .setSshDirectory(new File(home, ".ssh"))
                .setPreferredAuthentications("publickey")
                .setDefaultIdentities(directory -> Collections.singletonList(new File(key).toPath()))
                .build(null));
    }
}
