<?php
require 'vendor/autoload.php'; // composer require firebase/php-jwt

use Firebase\JWT\JWK;
use Firebase\JWT\JWT;

// For clocks that differ, in seconds.
JWT::$leeway = 30;

/** Keep the answer for 5 minutes, in the cache of your framework: a proof with an unknown key then needs it anew. */
function otpostKeys(): array
{
    $set = file_get_contents(getenv('OTPOST_URL') . '/.well-known/jwks.json');
    return JWK::parseKeySet(json_decode($set, true, 16, JSON_THROW_ON_ERROR));
}

/** Returns the claims of a valid proof. Null: refuse it. */
function claimsOf(string $proof, array $keys): ?stdClass
{
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

$keys = otpostKeys();
while (($line = fgets(STDIN)) !== false) {
    $claims = claimsOf(trim($line), $keys);
    echo $claims ? "proves $claims->to" : 'refused', "\n";
}
