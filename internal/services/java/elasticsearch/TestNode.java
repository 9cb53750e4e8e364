import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;

import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.plugins.PluginsLoader;

/**
 * Runs one Elasticsearch node as a plain process: {@code TestNode HOME setting=value...}, until it gets SIGTERM.
 *
 * <p>It does what the distribution's launcher does with HOME (modules/, plugins/, config/), less what a throw-away node
 * on the loopback address has no use for: the sandbox, native controllers, the refusal to run as root.
 */
public final class TestNode {
    private static final String NAME = "daybook-test";

    private TestNode() {}

    public static void main(String[] args) throws Exception {
        Path home = Path.of(args[0]);
        Settings.Builder settings = Settings.builder().put("path.home", home);
        for (int i = 1; i < args.length; i++) {
            String[] setting = args[i].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        Node node = open(home, settings.build());
        Runtime.getRuntime().addShutdownHook(new Thread(() -> close(node), "shutdown"));
        node.start();
        // Never returns: a main that ended while SIGTERM is handled would end the JVM a second time.
        Thread.currentThread().join();
    }

    private static Node open(Path home, Settings settings) throws Exception {
        LogConfigurator.registerErrorListener();
        LogConfigurator.configureESLogging();
        Environment environment = InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), home.resolve("config"), () -> NAME);
        LogConfigurator.setNodeName(NAME);
        LogConfigurator.configure(environment, true);
        PluginsLoader plugins = PluginsLoader.createPluginsLoader(
            PluginsLoader.loadModulesBundles(environment.modulesDir()),
            PluginsLoader.loadPluginsBundles(environment.pluginsDir()),
            Map.of(),
            false // the server is on the class path: there is no named module that could export to them
        );
        return new Node(environment, plugins);
    }

    private static void close(Node node) {
        try {
            node.prepareForClose();
            node.close();
            if (node.awaitClose(10, TimeUnit.SECONDS) == false) {
                System.err.println("the node did not close in time");
            }
        } catch (Exception e) {
            e.printStackTrace();
        }
    }
}
