import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Plans that give the same rows, each by the place of the first of them.
 *
 * It relies on LogicalPlan.canonicalized(), by which Spark itself finds the parts of a query that it runs once.
 */
public class EqualPlans {
    private final java.util.List plans;

    public EqualPlans(java.util.List plans) {
        this.plans = plans;
    }

    public String firsts() {
        java.util.HashMap seen = new java.util.HashMap();
        StringBuilder text = new StringBuilder();
        for (int at = 0; at < plans.size(); at++) {
            Object plan = ((LogicalPlan) plans.get(at)).canonicalized();
            if (!seen.containsKey(plan)) {
                seen.put(plan, Integer.valueOf(at));
            }
            text.append(seen.get(plan)).append(' ');
        }
        return text.toString();
    }
}
