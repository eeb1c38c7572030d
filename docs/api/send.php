<?php
const TEMPORARY = ['rate_limited', 'unavailable', 'idempotency_in_progress'];

/** Returns the JSON answer of otpost, also for errors. Makes up to three attempts. */
function otpost(string $path, array $fields): array
{
    // The same in each attempt: the message is sent once, and the code is compared once.
    $key = bin2hex(random_bytes(16));
    $pause = 0;
    $request = curl_init(getenv('OTPOST_URL') . $path);
    curl_setopt_array($request, [
        CURLOPT_POSTFIELDS => json_encode(['brandId' => getenv('OTPOST_BRAND_ID')] + $fields, JSON_THROW_ON_ERROR),
        CURLOPT_HTTPHEADER => ['authorization: Bearer ' . getenv('OTPOST_API_KEY'),
            'content-type: application/json', "idempotency-key: $key"],
        CURLOPT_HEADERFUNCTION => function ($request, string $header) use (&$pause): int {
            $pause = preg_match('/^retry-after: *(\d+)/i', $header, $found) ? (int) $found[1] : $pause;
            return strlen($header);
        },
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_TIMEOUT => 15,
    ]);
    for ($attempt = 1; ; $attempt++) {
        $pause = $attempt;
        $text = curl_exec($request);
        if ($text === false) {
            // No answer: a time-out, or the connection broke.
            $attempt < 3 || throw new RuntimeException(curl_error($request));
        } else {
            $answer = json_decode($text, true, 16, JSON_THROW_ON_ERROR);
            // A person waits: return the error if the pause would be long.
            if ($attempt === 3 || $pause > 5 || !in_array($answer['error'] ?? '', TEMPORARY, true)) {
                return $answer;
            }
        }
        sleep($pause);
    }
}

$phone = $argv[1] ?? '+1 202 555 0143';
$sent = otpost('/otp/send', ['phone' => $phone]);
$sent['success'] || throw new RuntimeException('not sent: ' . json_encode($sent));
echo "expires in {$sent['expiresIn']}\n";

$verified = otpost('/otp/verify', ['phone' => $phone, 'otp' => trim(fgets(STDIN))]);
echo match ($verified['error'] ?? '') {
    '' => 'verified',
    'mismatch' => 'wrong code',
    default => 'not verified: ' . json_encode($verified),
}, "\n";
