import java.io.IOException;
import java.net.URI;
import java.net.http.*;
import java.time.Duration;
import java.util.*;
import java.util.regex.Pattern;

public class SendAndVerify {
    // It follows no redirects by default.
    static final HttpClient client = HttpClient.newHttpClient();
    static final Set<String> TEMPORARY = Set.of("rate_limited", "unavailable", "idempotency_in_progress");

    /** Returns the JSON answer of otpost, also for errors. Makes up to three attempts. */
    static String call(String path, String fields) throws IOException, InterruptedException {
        var body = String.format("{\"brandId\":\"%s\",%s}", System.getenv("OTPOST_BRAND_ID"), fields);
        var request = HttpRequest.newBuilder(URI.create(System.getenv("OTPOST_URL") + path))
            .header("authorization", "Bearer " + System.getenv("OTPOST_API_KEY"))
            .header("content-type", "application/json")
            // The same in each attempt: the message is sent once, and the code is compared once.
            .header("idempotency-key", UUID.randomUUID().toString())
            .timeout(Duration.ofSeconds(15))
            .POST(HttpRequest.BodyPublishers.ofString(body)).build();
        for (int attempt = 1; ; attempt++) {
            long pause = attempt;
            try {
                var response = client.send(request, HttpResponse.BodyHandlers.ofString());
                pause = response.headers().firstValueAsLong("retry-after").orElse(attempt);
                // A person waits: return the error if the pause would be long.
                var isTemporary = TEMPORARY.contains(field(response.body(), "error"));
                if (attempt == 3 || pause > 5 || !isTemporary) return response.body();
            } catch (IOException error) {
                if (attempt == 3) throw error; // No answer: a time-out, or the connection broke.
            }
            Thread.sleep(pause * 1000);
        }
    }

    /** Use your JSON library instead. */
    static String field(String answer, String name) {
        var match = Pattern.compile("\"" + name + "\":\"?([^\",}]+)").matcher(answer);
        return match.find() ? match.group(1) : "";
    }

    public static void main(String[] args) throws Exception {
        var phone = String.format("\"phone\":\"%s\"", args.length > 0 ? args[0] : "+1 202 555 0143");
        var sent = call("/otp/send", phone);
        if (!field(sent, "success").equals("true")) throw new Exception("not sent: " + sent);
        System.out.println("expires in " + field(sent, "expiresIn"));

        var code = new Scanner(System.in).nextLine().replaceAll("[^0-9]", "");
        var verified = call("/otp/verify", phone + ",\"otp\":\"" + code + "\"");
        if (field(verified, "success").equals("true")) System.out.println("verified");
        else if (field(verified, "error").equals("mismatch")) System.out.println("wrong code");
        else System.out.println("not verified: " + verified);
    }
}
