# ruby redis.rb HOST PORT: asks a node for IDs as a program with redis-rb would, and prints them one a
# line.
require 'redis'

def strings(what, value, n = nil)
  ids = n ? value : [value]
  unless ids.is_a?(Array) && ids.length == (n || 1) && ids.all? { |id| id.is_a?(String) && id =~ /\A[1-9][0-9]*\z/ }
    raise "#{what}: #{value.inspect}"
  end
  puts ids
end

r = Redis.new(host: ARGV[0], port: ARGV[1].to_i, id: 'e' * 100, timeout: 10)
strings('GET', r.get('order'))
strings('GET 42', r.get('42'))
strings('MGET', r.mget('a', 'b', 'c'), 3)
strings('COUNT 100', r.call('GET', 'order', 'COUNT', '100'), 100)
strings('pipeline', r.pipelined { |p| 1000.times { p.get('order') } }, 1000)
strings('MULTI', r.multi { |t| 3.times { t.get('order') } }, 3)
raise 'PING' unless r.ping == 'PONG'
begin
  r.call('GET', 'order', 'COUNT', '0')
  raise 'COUNT 0 is answered'
rescue Redis::CommandError => e
  raise e unless e.message.start_with?('ERR a count must be 1 to ')
end
r.close
