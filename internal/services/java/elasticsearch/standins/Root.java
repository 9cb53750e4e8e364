package standins;

import java.util.List;

import org.apache.lucene.util.Version;
import org.elasticsearch.Build;
import org.elasticsearch.client.internal.node.NodeClient;
import org.elasticsearch.cluster.ClusterState;
import org.elasticsearch.cluster.service.ClusterService;
import org.elasticsearch.rest.BaseRestHandler;
import org.elasticsearch.rest.RestRequest;
import org.elasticsearch.rest.RestRequest.Method;
import org.elasticsearch.rest.RestResponse;
import org.elasticsearch.rest.RestStatus;
import org.elasticsearch.xcontent.XContentBuilder;

/** Says who answers, as the distribution does on /. */
final class Root extends BaseRestHandler {
    private final ClusterService clusterService;

    Root(ClusterService clusterService) {
        this.clusterService = clusterService;
    }

    @Override
    public String getName() {
        return "stand_in_root";
    }

    @Override
    public List<Route> routes() {
        return List.of(new Route(Method.GET, "/"), new Route(Method.HEAD, "/"));
    }

    @Override
    protected RestChannelConsumer prepareRequest(RestRequest request, NodeClient client) {
        return channel -> {
            ClusterState state = clusterService.state();
            boolean recovering = state.blocks().hasGlobalBlockWithStatus(RestStatus.SERVICE_UNAVAILABLE);
            XContentBuilder body = channel.newBuilder().prettyPrint().startObject();
            body.field("name", clusterService.getNodeName());
            body.field("cluster_name", state.getClusterName().value());
            body.field("cluster_uuid", state.metadata().clusterUUID());
            version(body);
            body.field("tagline", "You Know, for Search").endObject();
            channel.sendResponse(new RestResponse(recovering ? RestStatus.SERVICE_UNAVAILABLE : RestStatus.OK, body));
        };
    }

    private static void version(XContentBuilder body) throws java.io.IOException {
        Build build = Build.current();
        body.startObject("version");
        body.field("number", build.qualifiedVersion());
        body.field("build_flavor", build.flavor());
        body.field("build_type", build.type().displayName());
        body.field("build_hash", build.hash());
        body.field("build_date", build.date());
        body.field("build_snapshot", build.isSnapshot());
        body.field("lucene_version", Version.LATEST.toString());
        body.field("minimum_wire_compatibility_version", build.minWireCompatVersion());
        body.field("minimum_index_compatibility_version", build.minIndexCompatVersion());
        body.endObject();
    }
}
