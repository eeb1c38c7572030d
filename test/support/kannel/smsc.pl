#!/usr/bin/perl
# An SMSC on Debian's Net::SMPP, for one client at a time: takes messages over SMPP 3.4, tells of each in a line of JSON on
# stdout, and reports on it. By the end of the number: 000 is refused as an invalid destination, 111 as too much at
# once; 333 is taken, and reported as undeliverable for reason 640; all others are reported as delivered.
use strict;
use warnings;
use JSON::PP;
use Net::SMPP;

$| = 1;
my ($port) = @ARGV;
my %status_of = ('000' => 0x0b, '111' => 0x58);
my $taken = 0;

my $listener = Net::SMPP->new_listen('127.0.0.1', port => $port, smpp_version => 0x34, interface_version => 0x34)
  or die "cannot listen: $!\n";
report(listening => $listener->sockport);

while (1) {
    my $client = $listener->accept or next;
    $client->set_version(0x34);
    serve($client);
    close $client;
}

sub report {
    print encode_json({@_}), "\n";
}

sub serve {
    my ($client) = @_;
    while (my $pdu = $client->read_pdu) {
        my $cmd = $pdu->{cmd};
        if ($cmd == Net::SMPP::CMD_bind_transceiver) {
            my $known = $pdu->{system_id} eq 'esme' && $pdu->{password} eq 'smppword';
            $client->bind_transceiver_resp(system_id => 'smsc.pl', seq => $pdu->{seq}, status => $known ? 0 : 0x0e);
        } elsif ($cmd == Net::SMPP::CMD_submit_sm) {
            submit($client, $pdu);
        } elsif ($cmd == Net::SMPP::CMD_enquire_link) {
            $client->enquire_link_resp(seq => $pdu->{seq});
        } elsif ($cmd == Net::SMPP::CMD_unbind) {
            $client->unbind_resp(seq => $pdu->{seq});
            return;
        }
    }
}

sub submit {
    my ($client, $pdu) = @_;
    my ($to, $text) = ($pdu->{destination_addr}, $pdu->{short_message});
    my $status = $status_of{substr $to, -3} // 0;
    my $id = sprintf '%08x', ++$taken;
    report(
        from     => $pdu->{source_addr},
        to       => $to,
        coding   => $pdu->{data_coding},
        udh      => $pdu->{esm_class} & 0x40 ? JSON::PP::true : JSON::PP::false,
        validity => $pdu->{validity_period},
        hex      => unpack('H*', $text),
        tlvs     => { map { (sprintf('0x%04x', $_), $pdu->{$_}) } grep { defined $pdu->{$_} } 0x1400, 0x1401 },
        status   => $status,
    );
    $client->submit_sm_resp(message_id => $status ? '' : $id, seq => $pdu->{seq}, status => $status);
    return if $status || !($pdu->{registered_delivery} & 1);
    my ($stat, $err) = $to =~ /333$/ ? ('UNDELIV', '640') : ('DELIVRD', '000');
    my $head = substr $text, 0, 20;
    $client->deliver_sm(
        async               => 1,
        source_addr         => $to,
        destination_addr    => $pdu->{source_addr},
        esm_class           => 4,
        registered_delivery => 0,
        short_message       =>
          "id:$id sub:001 dlvrd:001 submit date:2601010000 done date:2601010000 stat:$stat err:$err text:$head",
    );
}
