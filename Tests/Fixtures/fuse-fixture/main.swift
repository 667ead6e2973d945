import Glibc

/// The driver of the tests of mounts: runs one scenario in a process of its own, which a test can kill if it hangs.
///
/// `fuse-fixture SCENARIO DIRECTORY`: mounts below DIRECTORY, prints what did not hold; status 0 if all held.
let scenarios: [String: () throws -> Void] = [
  "names": Scenarios.names,
  "contents": Scenarios.contents,
  "attributes": Scenarios.attributes,
  "xattrs": Scenarios.xattrs,
  "listing": Scenarios.listing,
  "forget": Scenarios.forget,
  "sizes": Scenarios.sizes,
  "killpriv": Scenarios.killpriv,
  "mapping": Scenarios.mapping,
  "defaults": Scenarios.defaults,
  "dropped": Scenarios.dropped,
  "later": Scenarios.later,
  "parallel": Scenarios.parallel,
  "caller": Scenarios.caller,
  "invalidation": Scenarios.invalidation,
  "two": Scenarios.twoSessions,
  "unmounted-outside": Scenarios.unmountedOutside,
  "lazy": Scenarios.lazyUnmount,
  "exit": Scenarios.exit,
  "exit-detached": Scenarios.exitDetached,
  "late": Scenarios.lateReply,
  "options": Scenarios.options,
  "refused": Scenarios.refused,
  "unprivileged": Scenarios.unprivileged,
  "lifetime": Scenarios.lifetime,
]

guard CommandLine.arguments.count == 3, let scenario = scenarios[CommandLine.arguments[1]] else {
  print("fuse-fixture SCENARIO DIRECTORY, with SCENARIO of \(scenarios.keys.sorted().joined(separator: ", "))")
  exit(64)
}
let scenarioDirectory = CommandLine.arguments[2]
do {
  try scenario()
} catch {
  Expectations.fail("thrown: \(error)", 0)
}
for failure in Expectations.failed { print(failure) }
exit(Expectations.failed.isEmpty ? 0 : 1)
