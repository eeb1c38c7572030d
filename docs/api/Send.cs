using System.Net.Http.Json;

string[] temporary = ["rate_limited", "unavailable", "idempotency_in_progress"];
string Variable(string name) => Environment.GetEnvironmentVariable(name) ?? throw new Exception($"{name} is not set");

// The request has the API key, so redirects are not followed.
using var handler = new HttpClientHandler { AllowAutoRedirect = false };
using var client = new HttpClient(handler) { Timeout = TimeSpan.FromSeconds(15) };

// Returns the answer of otpost, also for errors. Up to three attempts have one key: one message, one comparison.
async Task<Answer> Call(string path, Dictionary<string, string> fields)
{
    fields["brandId"] = Variable("OTPOST_BRAND_ID");
    var key = Guid.NewGuid().ToString();
    for (var attempt = 1; ; attempt++)
    {
        var pause = TimeSpan.FromSeconds(attempt);
        try
        {
            using var request = new HttpRequestMessage(HttpMethod.Post, Variable("OTPOST_URL") + path);
            request.Content = JsonContent.Create(fields);
            request.Headers.Authorization = new("Bearer", Variable("OTPOST_API_KEY"));
            request.Headers.Add("Idempotency-Key", key);
            using var response = await client.SendAsync(request);
            var answer = (await response.Content.ReadFromJsonAsync<Answer>())!;
            pause = response.Headers.RetryAfter?.Delta ?? pause;
            // A person waits: return the error if the pause would be long.
            if (attempt == 3 || pause.TotalSeconds > 5 || !temporary.Contains(answer.Error)) return answer;
        }
        // No answer: a time-out, or the connection broke.
        catch (Exception error) when (attempt < 3 && error is HttpRequestException or TaskCanceledException) { }
        await Task.Delay(pause);
    }
}

var phone = args.Length > 0 ? args[0] : "+1 202 555 0143";
var sent = await Call("/otp/send", new() { ["phone"] = phone });
if (!sent.Success) throw new Exception($"not sent: {sent}");
Console.WriteLine($"expires in {sent.ExpiresIn}");

var verified = await Call("/otp/verify", new() { ["phone"] = phone, ["otp"] = Console.ReadLine()?.Trim() ?? "" });
Console.WriteLine(verified switch
{
    { Success: true } => "verified",
    { Error: "mismatch" } => "wrong code",
    _ => $"not verified: {verified}",
});

record Answer(bool Success, string? Error, string? Reason, string? Message, string RequestId, int? ExpiresIn);
