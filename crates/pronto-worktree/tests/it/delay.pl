use strict; use warnings; binmode STDIN; binmode STDOUT; $| = 1;
sub get { read(STDIN, my $h, 4) == 4 or exit 0; my $n = hex $h; return undef if $n == 0;
  my $d = ""; while (length $d < $n - 4) { read(STDIN, $d, $n - 4 - length $d, length $d) or exit 1 } $d }
sub put { my ($d) = @_; printf "%04x%s", length($d) + 4, $d }
sub flush_ { print "0000" }
get(); get(); defined get() and die; put("git-filter-server\n"); put("version=2\n"); flush_();
while (defined get()) {} put("capability=clean\n"); put("capability=smudge\n"); put("capability=delay\n"); flush_();
my %late; my @ready;
while (1) {
  my %h; while (defined(my $l = get())) { chomp $l; my ($k, $v) = split /=/, $l, 2; $h{$k} = $v }
  if ($h{command} eq "list_available_blobs") {
    my @now = splice @ready, -3 < -@ready ? 0 : -3; put("pathname=$_\n") for @now; flush_(); put("status=success\n"); flush_(); next }
  my $d = ""; while (defined(my $p = get())) { $d .= $p }
  my $path = $h{pathname};
  if ($h{command} eq "smudge" && $h{"can-delay"}) { $late{$path} = $d; push @ready, $path; put("status=delayed\n"); flush_(); next }
  $d = delete $late{$path} if exists $late{$path};
  $d =~ tr/a-zA-Z/n-za-mN-ZA-M/;
  put("status=success\n"); flush_(); put($d) if length $d; flush_(); flush_();
}
