package serve;

import jakarta.servlet.http.HttpServletRequest;
import java.io.File;
import java.net.InetSocketAddress;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;
import org.eclipse.jgit.http.server.GitServlet;
import org.eclipse.jgit.transport.ReceivePack;
import org.eclipse.jgit.transport.resolver.FileResolver;

/** JGit's server for HTTP in Jetty: the arguments are a port and the directory of repositories. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) throws Exception {
        GitServlet git = new GitServlet();
        git.setRepositoryResolver(
                new FileResolver<HttpServletRequest>(new File(arguments[1]), true));
        git.setReceivePackFactory((request, repository) -> new ReceivePack(repository));
        ServletContextHandler context = new ServletContextHandler();
        context.setContextPath("/");
        context.addServlet(new ServletHolder(git), "/*");
        int port = Integer.parseInt(arguments[0]);
        Server server = new Server(new InetSocketAddress("127.0.0.1", port));
        server.setHandler(context);
        server.start();
        server.join();
    }
}
