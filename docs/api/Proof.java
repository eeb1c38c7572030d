import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Optional;
import java.util.Scanner;
import org.jose4j.jwa.AlgorithmConstraints.ConstraintType;
import org.jose4j.jwk.HttpsJwks;
import org.jose4j.jwt.JwtClaims;
import org.jose4j.jwt.consumer.InvalidJwtException;
import org.jose4j.jwt.consumer.JwtConsumer;
import org.jose4j.jwt.consumer.JwtConsumerBuilder;
import org.jose4j.keys.resolvers.HttpsJwksVerificationKeyResolver;

public class Proof {
    // Keeps the keys as long as the server allows, and loads them again for an unknown one.
    static final HttpsJwks keys = new HttpsJwks(System.getenv("OTPOST_URL") + "/.well-known/jwks.json");

    static final JwtConsumer consumer = new JwtConsumerBuilder()
        .setJwsAlgorithmConstraints(ConstraintType.PERMIT, "EdDSA")
        .setVerificationKeyResolver(new HttpsJwksVerificationKeyResolver(keys))
        .setExpectedIssuer(true, System.getenv("OTPOST_ISSUER"))
        .setExpectedAudience(true, System.getenv("OTPOST_APP_ID"))
        .setRequireExpirationTime()
        .setRequireJwtId()
        .setAllowedClockSkewInSeconds(30)
        .build();

    /** Returns the claims of a valid proof. Empty: refuse it. */
    static Optional<JwtClaims> claimsOf(String proof) {
        try {
            var claims = consumer.processToClaims(proof);
            // The code of a review number was sent to nobody.
            return claims.hasClaim("review") || !claims.hasClaim("to") ? Optional.empty() : Optional.of(claims);
        } catch (InvalidJwtException error) {
            // A key set that cannot be loaded says nothing about the proof.
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                if (cause instanceof IOException failure) throw new UncheckedIOException(failure);
            }
            return Optional.empty();
        }
    }

    public static void main(String[] args) {
        var lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            try {
                var claims = claimsOf(lines.nextLine());
                System.out.println(claims.map(each -> "proves " + each.getClaimValueAsString("to")).orElse("refused"));
            } catch (UncheckedIOException error) {
                System.out.println("not checked: " + error.getMessage());
            }
        }
    }
}
