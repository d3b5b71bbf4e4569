// An object that breaks the level rule, to see the test notice: an inline function outside the level's namespace.
namespace linnet {
namespace leaky {
int own(int x) { return x + 1; }
}  // namespace leaky
inline int shared_by_all_levels(int x) { return 2 * x; }
int (*use)(int) = shared_by_all_levels;
}  // namespace linnet
