<?php
require 'vendor/autoload.php'; // composer require firebase/php-jwt

use Firebase\JWT\JWK;
use Firebase\JWT\JWT;

// For clocks that differ, in seconds.
JWT::$leeway = 30;

/**
 * Loads the keys again every 5 minutes, and for an unknown one, at most once per 30 seconds. Where each request is a
 * process, keep them and the times in the cache of your framework.
 */
function otpostKeys(string $proof): array
{
    static $keys = [], $loadedAt = -INF, $triedAt = -INF;
    $header = json_decode(JWT::urlsafeB64Decode(explode('.', $proof)[0]), true);
    $kid = is_array($header) ? $header['kid'] ?? null : null;
    $isKnown = is_string($kid) && isset($keys[$kid]);
    $now = hrtime(true) / 1e9;
    if ((!$isKnown || $now - $loadedAt >= 300) && $now - $triedAt >= 30) {
        $triedAt = $now;
        $set = @file_get_contents(getenv('OTPOST_URL') . '/.well-known/jwks.json');
        if ($set !== false) {
            $keys = JWK::parseKeySet(json_decode($set, true, 16, JSON_THROW_ON_ERROR));
            $loadedAt = $now;
        }
    }
    // This says nothing about the proof.
    if ($now - $loadedAt >= 300) throw new RuntimeException('not checked: the key set cannot be loaded');
    return $keys;
}

/** Returns the claims of a valid proof. Null: refuse it. */
function claimsOf(string $proof): ?stdClass
{
    $keys = otpostKeys($proof);
    try {
        // Each key has its algorithm.
        $claims = JWT::decode($proof, $keys);
    } catch (UnexpectedValueException | InvalidArgumentException | DomainException | TypeError) {
        return null;
    }
    $isOurs = ($claims->iss ?? null) === getenv('OTPOST_ISSUER') && ($claims->aud ?? null) === getenv('OTPOST_APP_ID');
    // The code of a review number was sent to nobody.
    return $isOurs && isset($claims->exp, $claims->jti, $claims->to) && !isset($claims->review) ? $claims : null;
}

while (($line = fgets(STDIN)) !== false) {
    try {
        $claims = claimsOf(trim($line));
        echo $claims ? "proves $claims->to" : 'refused', "\n";
    } catch (RuntimeException $error) {
        echo $error->getMessage(), "\n";
    }
}
