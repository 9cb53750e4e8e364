package standins;

import java.util.HashSet;
import java.util.List;
import java.util.Set;

import org.elasticsearch.ResourceNotFoundException;
import org.elasticsearch.action.ActionListener;
import org.elasticsearch.action.support.IndicesOptions;
import org.elasticsearch.action.support.master.AcknowledgedResponse;
import org.elasticsearch.client.internal.node.NodeClient;
import org.elasticsearch.cluster.ClusterState;
import org.elasticsearch.cluster.ClusterStateUpdateTask;
import org.elasticsearch.cluster.metadata.DataStream;
import org.elasticsearch.cluster.metadata.IndexNameExpressionResolver;
import org.elasticsearch.cluster.metadata.Metadata;
import org.elasticsearch.cluster.metadata.MetadataDeleteIndexService;
import org.elasticsearch.cluster.service.ClusterService;
import org.elasticsearch.index.Index;
import org.elasticsearch.rest.BaseRestHandler;
import org.elasticsearch.rest.RestRequest;
import org.elasticsearch.rest.RestRequest.Method;
import org.elasticsearch.rest.RestResponse;
import org.elasticsearch.rest.RestStatus;
import org.elasticsearch.rest.action.RestToXContentListener;
import org.elasticsearch.xcontent.XContentBuilder;

/** Lists and deletes data streams, with the fields that the server itself knows. Writing to a name creates one. */
final class DataStreams extends BaseRestHandler {
    private final ClusterService clusterService;
    private final IndexNameExpressionResolver resolver;

    DataStreams(ClusterService clusterService, IndexNameExpressionResolver resolver) {
        this.clusterService = clusterService;
        this.resolver = resolver;
    }

    @Override
    public String getName() {
        return "stand_in_data_streams";
    }

    @Override
    public List<Route> routes() {
        return List.of(
            new Route(Method.GET, "/_data_stream"),
            new Route(Method.GET, "/_data_stream/{name}"),
            new Route(Method.DELETE, "/_data_stream/{name}")
        );
    }

    @Override
    protected RestChannelConsumer prepareRequest(RestRequest request, NodeClient client) {
        String[] patterns = request.paramAsStringArray("name", new String[] { "*" });
        if (request.method() == Method.DELETE) {
            return channel -> delete(patterns, new RestToXContentListener<>(channel));
        }
        return channel -> {
            XContentBuilder body = channel.newBuilder().startObject().startArray("data_streams");
            for (String name : matching(patterns)) {
                describe(clusterService.state().metadata().dataStreams().get(name), body);
            }
            channel.sendResponse(new RestResponse(RestStatus.OK, body.endArray().endObject()));
        };
    }

    private static void describe(DataStream stream, XContentBuilder body) throws java.io.IOException {
        body.startObject();
        body.field("name", stream.getName());
        body.startObject("timestamp_field").field("name", "@timestamp").endObject();
        body.startArray("indices");
        for (Index index : stream.getIndices()) {
            body.startObject().field("index_name", index.getName()).field("index_uuid", index.getUUID()).endObject();
        }
        body.endArray();
        body.field("generation", stream.getGeneration());
        body.endObject();
    }

    private List<String> matching(String... patterns) {
        return resolver.dataStreamNames(clusterService.state(), IndicesOptions.strictExpandOpen(), patterns);
    }

    @SuppressWarnings("deprecation") // its successor batches tasks, which a single one has no use for
    private void delete(String[] patterns, ActionListener<AcknowledgedResponse> listener) {
        List<String> names = matching(patterns);
        if (names.isEmpty()) {
            listener.onFailure(new ResourceNotFoundException("no data stream matches " + String.join(",", patterns)));
            return;
        }
        clusterService.submitUnbatchedStateUpdateTask("delete data streams", new ClusterStateUpdateTask() {
            @Override
            public ClusterState execute(ClusterState state) {
                Set<Index> indices = new HashSet<>();
                Metadata.Builder metadata = Metadata.builder(state.metadata());
                for (String name : names) {
                    indices.addAll(state.metadata().dataStreams().get(name).getIndices());
                    metadata.removeDataStream(name);
                }
                ClusterState without = ClusterState.builder(state).metadata(metadata).build();
                return MetadataDeleteIndexService.deleteIndices(without, indices, clusterService.getSettings());
            }

            @Override
            public void clusterStateProcessed(ClusterState before, ClusterState after) {
                listener.onResponse(AcknowledgedResponse.TRUE);
            }

            @Override
            public void onFailure(Exception e) {
                listener.onFailure(e);
            }
        });
    }
}
