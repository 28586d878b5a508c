import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;

/** Tomcat with a connector for each way in which it may read an encoded slash. It answers with the path that it read. */
public class PathReader {
  /** @param args a folder for its files, and the ports of the connectors */
  public static void main(String[] args) throws Exception {
    Tomcat tomcat = new Tomcat();
    tomcat.setBaseDir(args[0]);
    String[] handlings = {"reject", "decode", "passthrough"};
    for (int i = 0; i < handlings.length; i++) {
      Connector connector = new Connector();
      connector.setPort(Integer.parseInt(args[i + 1]));
      connector.setProperty("address", "127.0.0.1");
      connector.setEncodedSolidusHandling(handlings[i]);
      connector.setAllowBackslash(i > 0);
      tomcat.getService().addConnector(connector);
    }
    var context = tomcat.addContext("", args[0]);
    Tomcat.addServlet(context, "reader", new Reader());
    context.addServletMappingDecoded("/*", "reader");
    tomcat.start();
    tomcat.getServer().await();
  }

  private static class Reader extends HttpServlet {
    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
      String rest = request.getPathInfo() == null ? "" : request.getPathInfo();
      String path = request.getServletPath() + rest;
      response.setContentType("application/octet-stream");
      response.getOutputStream().write(path.getBytes(StandardCharsets.ISO_8859_1));
    }
  }
}
