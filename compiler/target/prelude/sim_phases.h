// The text before a kernel that runs on a simulated GPU, fourth part of five: phases (PTX's mbarrier), which order the
// accesses of a block's compute threads and of its copier threads; compiler/kernel/instrs.def defines them.

// Begins the phases of a buffer of Count elements, each of which needs Arrivals arrivals to end. The first Computing
// threads of a block are compute threads, the others are copier threads.
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
// The running thread arrives at the current phase of element `number`. If `counts` is false, another thread's arrival
// stands for this one. The last of the needed arrivals ends the phase and completes the asynchronous copies that belong
// to it.
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
// A matrix in global memory from which boxes are copied to shared memory, in place of NVIDIA's tensor map
// (compiler/kernel/shared_factors.h). The extents and the distance of rows (`pitch`) are in elements. A box is copied
// as pieces of 16 bytes: each copier thread copies every piece of some of its rows.
template <class From>
struct wl_sim_map {
  From from;
  long rows, columns, pitch;
};
template <int Rows, int Columns, bool Bf16, class From, class W, class S>
WL_FN wl_sim_map<From> wl_box_map(From from, W, long, S, int, long rows, long columns, long pitch) {
  return {from, rows, columns, pitch};
}
WL_FN void wl_maps_are_made() {}
template <int Rows, int Boxes, int Copiers, class From, class T, long N, class P>
WL_FN void wl_box_load(wl_sim_map<From> map, int place, long column, long row, wl_shared<T, N> to, P,
                       int line = __builtin_LINE()) {
  constexpr int piece = 16 / (int)sizeof(T), pieces = 8;
  for (int box = 0; box < Boxes; ++box)
    for (int r = place; r < Rows; r += Copiers)
      for (int c = 0; c < pieces; ++c) {
        const long x = column + (box * pieces + c) * piece, y = row + r;
        const bool inside = x >= 0 && x < map.columns && y >= 0 && y < map.rows;
        const long at = (box * Rows + r) * pieces + (c ^ (r & 7));
        wl_send_in<piece>(to + at * piece, map.from + (inside ? y * map.pitch + x : 0), inside, line);
      }
}
