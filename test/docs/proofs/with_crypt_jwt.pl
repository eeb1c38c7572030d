use strict;
use warnings;
use Crypt::JWT 'decode_jwt';
use HTTP::Tiny;
use JSON::PP;

my $keys = decode_json(HTTP::Tiny->new->get("$ENV{OTPOST_URL}/.well-known/jwks.json")->{content});
while (my $proof = <STDIN>) {
    chomp $proof;
    my $claims = eval {
        decode_jwt(
            token => $proof,
            kid_keys => $keys,
            accepted_alg => 'EdDSA',
            verify_iss => $ENV{OTPOST_ISSUER},
            verify_aud => $ENV{OTPOST_APP_ID},
            verify_exp => 1,
            leeway => 30,
        );
    };
    my $is_proof = ref $claims eq 'HASH' && $claims->{jti} && $claims->{to} && !$claims->{review};
    print $is_proof ? "proves $claims->{to}\n" : "refused\n";
}
