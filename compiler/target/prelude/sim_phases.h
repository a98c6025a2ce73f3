// The simulated GPU's half, fourth part: phases (compiler/kernel/instrs.def), which order what threads of two roles do.
// The first `Computing` threads of a block are no copiers.
template <int Count, int Arrivals, int Computing, class T, long N>
WL_FN void wl_begin_phases(wl_shared<T, N> p, int thread) {
  wl_sim& s = *wl_sim_now;
  s.computing = Computing;
  for (int i = 0; thread == 0 && i < Count; ++i) {
    if (s.phase_count == wl_sim_phases) abort();
    s.phases[s.phase_count++] = {p.byte + i * (long)sizeof(T), Arrivals, 0, 0, 0, 0, 0, {0, 0}};
  }
}
template <class T, long N>
static int wl_sim_phase_at(wl_shared<T, N> p, int line) {
  wl_sim& s = *wl_sim_now;
  int i = 0;
  while (i < s.phase_count && s.phases[i].at != p.byte + p.at * (long)sizeof(T)) ++i;
  if (p.at < 0 || p.at >= N || i == s.phase_count) wl_sim_fail("no such phase", line, p.at);
  return i;
}
// One more has arrived; the last one ends the phase, and then what was copied for it is there.
static void wl_sim_arrive(int number, bool counts, int line) {
  wl_sim& s = *wl_sim_now;
  wl_sim_phase& phase = s.phases[number];
  wl_sim_lane& me = s.lanes[s.thread];
  const int role = wl_sim_role(s, s.thread);
  const unsigned clock = me.clock++, other = me.sees[1 - role];
  if (!counts) return;
  if (phase.arrived == 0) {
    phase.role = role;
    phase.clock = clock;
    phase.other = other;
  }
  if (phase.role != role || phase.clock != clock)
    wl_sim_fail("threads arrive at a phase from different places", line, number);
  if (other < phase.other) phase.other = other;
  if (++phase.arrived < phase.arrivals) return;
  phase.arrived = 0;
  phase.told[role] = clock + 1;
  phase.told[1 - role] = phase.other;
  for (int i = 0; i < s.size; ++i)
    if (wl_sim_role(s, i) == role)
      wl_sim_land(
          i, [=](const wl_sim_copy& copy) { return copy.group == -1 - number; }, line);
  ++phase.ended;
}
template <class T, long N>
WL_FN void wl_arrive(wl_shared<T, N> p, int line = __builtin_LINE()) {
  const int number = wl_sim_phase_at(p, line);
  wl_sim_exchange(0, 0, line);
  wl_sim_arrive(number, wl_sim_now->thread % WL_WAVE == 0, line);
}
template <class T, long N>
WL_FN void wl_arrive_copied(wl_shared<T, N> p, int line = __builtin_LINE()) {
  wl_sim& s = *wl_sim_now;
  const int number = wl_sim_phase_at(p, line);
  for (int i = 0; i < s.lanes[s.thread].queued; ++i) {
    wl_sim_copy& copy = s.copies[s.thread * wl_sim_copies + i];
    if (copy.group < 0) continue;
    copy.group = -1 - number;
    copy.clock = s.lanes[s.thread].clock;
  }
  wl_sim_arrive(number, true, line);
}
template <class T, long N>
WL_FN void wl_await(wl_shared<T, N> p, long parity, int line = __builtin_LINE()) {
  wl_sim& s = *wl_sim_now;
  const int number = wl_sim_phase_at(p, line), thread = s.thread;
  wl_sim_lane& me = s.lanes[thread];
  if (!wl_sim_has_ended(s.phases[number], (int)parity)) {
    me.line = line;
    me.phase = number;
    me.parity = (int)parity;
    me.state = kSimAwaits;
    wl_sim_next(s);
  }
  ++me.clock;
  for (int role = 0; role < 2; ++role)
    if (s.phases[number].told[role] > me.sees[role]) me.sees[role] = s.phases[number].told[role];
}
